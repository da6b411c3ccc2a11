"""`python -m bedplate.cli`, the same as the `bedplate` script."""

from bedplate.cli.main import entry

entry()
