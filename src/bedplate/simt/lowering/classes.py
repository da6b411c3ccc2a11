"""Importing this registers every lowering."""

from bedplate.simt.lowering import (
    comparison,
    conversion,
    floating,
    integer,
    memory,
    movement,
)

__all__ = ["comparison", "conversion", "floating", "integer", "memory", "movement"]
