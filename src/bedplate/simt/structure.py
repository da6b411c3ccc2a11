"""Where the fields of the ABI's structures lie, for code that is being made."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from bedplate.simt import lanes
from bedplate.simt.lanes import I8, I64, PTR


def field_place(
    builder: ir.IRBuilder, pointer: Any, structure: Any, name: str, index: int = 0
) -> tuple[Any, ir.Type]:
    """Where a field of an ABI structure lies, and its type."""
    described = getattr(structure, name)
    ctype = dict(structure._fields_)[name]
    length = getattr(ctype, "_length_", 1)
    size = described.size // length
    kind = PTR if name in _POINTERS else lanes.integer(8 * size)
    offset = ir.Constant(I64, described.offset + index * size)
    return builder.gep(pointer, [offset], source_etype=I8), kind


_POINTERS = frozenset(
    (
        *("parameters", "windows", "symbols", "cancel", "fault", "trace", "counters", "printf"),
        *("host", "shared", "local", "records", "sites"),
    )
)
