"""Carries: a sum one bit wider; a borrow is kept as a carry, set when there was one.

The ISA leaves open what the flag looks like after `sub.cc`; only `subc` may read it.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from bedplate.simt import lanes
from bedplate.simt.emitter import Emitter
from bedplate.simt.lowering.base import lanewise
from bedplate.simt.lowering.integer import high_half
from bedplate.simt.module import Instruction


@lanewise("carry", "add", "addc", "sub", "subc")
def add_sub(e: Emitter, made: Instruction, a: Any, b: Any, carry: Any | None = None) -> Any:
    """The sum or difference, and whether it left the width."""
    return _combined(e, made, made.opcode.startswith("add"), a, b, carry)


@lanewise("carry", "mad", "madc")
def multiply_add(
    e: Emitter, made: Instruction, a: Any, b: Any, c: Any, carry: Any | None = None
) -> Any:
    """A half of the product, and a sum with carry."""
    low = made.slots["half"] == "lo"
    half = e.builder.mul(a, b) if low else high_half(e, made, a, b)
    return _combined(e, made, True, half, c, carry)


def _combined(
    e: Emitter, made: Instruction, adding: bool, a: Any, b: Any, carry: Any | None
) -> Any:
    builder = e.builder
    wide = ir.IntType(made.type.bits + 1)
    values = [builder.zext(value, lanes.retyped(value, wide)) for value in (a, b)]
    combine = builder.add if adding else builder.sub
    total = combine(*values)
    if carry is not None:
        total = combine(total, builder.zext(carry, total.type))
    result = builder.trunc(total, a.type)
    if not made.has("cc"):
        return result
    bit = builder.lshr(total, lanes.like(total, made.type.bits))
    return result, builder.trunc(bit, lanes.retyped(bit, lanes.I1))
