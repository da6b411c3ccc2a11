"""Bedplate: the whole GPU stack, on any hardware, including none.

The package itself holds only its version; each system is a subpackage whose
`api` module is what others may import.
"""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("bedplate")
except PackageNotFoundError:  # running from a source tree that was never installed
    __version__ = "0.0.0+uninstalled"

__all__ = ["__version__"]
