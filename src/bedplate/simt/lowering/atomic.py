"""Atomics: lane by lane, the lowest first, each with the processor's own instruction.

A launch whose results depend on which block comes first runs on one host thread, unless
the caller asks for more; `ordered` says which kernels those are.
"""

from __future__ import annotations

from typing import Any

from bedplate.simt import lanes, resolve
from bedplate.simt.emitter import Emitter
from bedplate.simt.lowering.base import lowers
from bedplate.simt.lowering.memory import Access, address_lanes
from bedplate.simt.module import Address, Instruction, Register
from bedplate.simt.tool import AllLanes


@lowers("atom", "red")
def atomic(e: Emitter, made: Instruction) -> None:
    """The old value is the result; f32 sums in global memory flush subnormals."""
    kind = made.type
    space = made.slots.get("space", "generic")
    access = Access(made, space, kind.bits, 1)
    address = made.operands["m"]
    assert isinstance(address, Address)
    bits = lanes.integer(kind.bits)
    values: list[Any] = []
    for name in ("b", "c"):
        operand = made.operands.get(name)
        if operand is not None:
            values.append(lanes.cast(e.builder, e.vector(operand, kind), bits))
    addresses = address_lanes(e, address)
    for tool in e.tools:
        tool.accessed(e, made, space, AllLanes(addresses), access.bytes)
    mask = e.mask
    operation = f"{made.slots['op']}{kind.name}"
    old = resolve.atomic(e, access, operation, addresses, mask, values)
    output = made.operands.get("d")
    if isinstance(output, Register):
        e.write(output, old)
