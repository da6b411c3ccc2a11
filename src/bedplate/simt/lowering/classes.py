"""Importing this registers every lowering."""

from bedplate.simt.lowering import (
    atomic,
    carry,
    comparison,
    conversion,
    copy,
    floating,
    integer,
    matrix,
    memory,
    movement,
    packing,
    sync,
)

__all__ = [
    "atomic",
    "carry",
    "comparison",
    "conversion",
    "copy",
    "floating",
    "integer",
    "matrix",
    "memory",
    "movement",
    "packing",
    "sync",
]
