"""Registers and their parts."""

from __future__ import annotations

from typing import Any

from bedplate.simt import lanes
from bedplate.simt.emitter import Emitter
from bedplate.simt.lowering.base import lowers
from bedplate.simt.module import Instruction, Register, Vector


@lowers("mov.pack")
def pack(e: Emitter, made: Instruction) -> None:
    """The first part lies lowest."""
    parts, output = made.operands["a"], made.operands["d"]
    assert isinstance(parts, Vector)
    assert isinstance(output, Register)
    whole, part = made.types["d"], made.types["a"]
    result: Any = None
    for number, item in enumerate(parts.elements):
        assert item is not None
        value = lanes.resized(e.builder, e.vector(item, part), whole.bits)
        value = e.builder.shl(value, lanes.like(value, number * part.bits))
        result = value if result is None else e.builder.or_(result, value)
    e.write(output, result)


@lowers("mov.unpack")
def unpack(e: Emitter, made: Instruction) -> None:
    """All parts are of the value before, though a part may be the same register."""
    parts, source = made.operands["d"], made.operands["a"]
    assert isinstance(parts, Vector)
    whole, part = made.types["a"], made.types["d"]
    value = e.vector(source, whole)  # type: ignore[arg-type]
    for number, item in enumerate(parts.elements):
        if isinstance(item, Register):
            moved = e.builder.lshr(value, lanes.like(value, number * part.bits))
            e.write(item, lanes.resized(e.builder, moved, part.bits))
