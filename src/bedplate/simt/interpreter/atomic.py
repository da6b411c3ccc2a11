"""Atomics, lane by lane, the lowest first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bedplate.simt import exact
from bedplate.simt.interpreter.base import executes
from bedplate.simt.interpreter.engine import WarpState
from bedplate.simt.module import Address, Instruction, Register
from bedplate.simt.scalar import LANES, SCALARS

_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": lambda old, b: old + b,
    "exch": lambda old, b: b,
    "min": min,
    "max": max,
    "inc": lambda old, b: 0 if old >= b else old + 1,
    "dec": lambda old, b: b if old == 0 or old > b else old - 1,
    "and": lambda old, b: old & b,
    "or": lambda old, b: old | b,
    "xor": lambda old, b: old ^ b,
}


@executes("atom", "red")
def atomic(warp: WarpState, made: Instruction) -> None:
    """The old value is the result."""
    kind, address = made.type, made.operands["m"]
    assert isinstance(address, Address)
    space, operation = made.slots.get("space", "generic"), made.slots["op"]
    bits = SCALARS[f"b{kind.bits}"]
    floating = kind.kind == "float"
    read = [
        warp.read(operand, bits if floating else kind).tolist()
        for name in ("b", "c")
        if (operand := made.operands.get(name)) is not None
    ]
    addresses, old = warp.addresses(address), np.zeros(LANES, bits.dtype)
    if warp.grid.observer is not None:
        warp.grid.observer.accessed(warp, made, space, addresses, kind.bytes)
    for lane in warp.lanes():
        place = warp.bytes(made, space, lane, int(addresses[lane]), kind.bytes)
        cell = place.view(bits.dtype if floating else kind.dtype)
        before = int(cell[0])
        old[lane] = before % (1 << kind.bits)
        if operation == "cas":
            after = read[1][lane] if before == read[0][lane] else before
        elif floating:
            after = _sum(before, read[0][lane], kind.name, flush=space != "shared")
        else:
            after = _OPERATIONS[operation](before, read[0][lane])
        cell.view(bits.dtype)[0] = after % (1 << kind.bits)
    output = made.operands.get("d")
    if isinstance(output, Register):
        warp.write(made, output, old)


def _sum(a: int, b: int, kind: str, *, flush: bool) -> int:
    """A float sum; that of f32 in global memory flushes subnormals, as the ISA says."""
    if kind == "f32" and flush:
        return _flushed(exact.add(_flushed(a), _flushed(b), exact.BINARY32))
    return exact.add(a, b, exact.FORMATS[kind])


def _flushed(bits: int) -> int:
    return bits & 0x80000000 if not bits & 0x7F800000 else bits
