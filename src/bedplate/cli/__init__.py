"""The command line: one module per verb, found by name, wired in `main`."""
