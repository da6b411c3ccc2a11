"""The checks of tools/check.py, one noun a file."""
