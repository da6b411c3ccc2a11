"""The classes of instructions; for each a file in `lowering/` and in `interpreter/`.

Both engines take the list from here, so that neither can forget a class.
"""

from __future__ import annotations

from importlib import import_module

CLASSES = (
    *("atomic", "carry", "comparison", "conversion", "copy", "floating", "integer", "matrix"),
    *("memory", "movement", "packing", "printing", "sync"),
)


def register(package: str) -> None:
    """Import the files of all classes, which registers what they say."""
    for name in CLASSES:
        import_module(f"{package}.{name}")
