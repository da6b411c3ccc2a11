"""Importing this registers every lowering."""

from bedplate.simt.lowering import (
    atomic,
    carry,
    comparison,
    conversion,
    floating,
    integer,
    memory,
    movement,
    sync,
)

__all__ = [
    "atomic",
    "carry",
    "comparison",
    "conversion",
    "floating",
    "integer",
    "memory",
    "movement",
    "sync",
]
