"""Importing this registers every instruction of the reference."""

from bedplate.simt.interpreter import (
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
