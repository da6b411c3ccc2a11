"""Loads and stores: every active lane looked at, lowest first."""

from __future__ import annotations

from typing import Any

import numpy as np

from bedplate.simt.interpreter.base import executes
from bedplate.simt.interpreter.engine import WarpState
from bedplate.simt.module import Address, Instruction, Register, VariableAddress, Vector


def _elements(operand: Any) -> list[Any]:
    return list(operand.elements) if isinstance(operand, Vector) else [operand]


@executes("ld")
def load(warp: WarpState, made: Instruction) -> None:
    """Each element of each active lane, extended to its register by the type's sign."""
    outputs, kind = _elements(made.operands["d"]), made.type
    values = np.zeros((len(outputs), 32), kind.dtype)
    for lane, place in _places(warp, made, len(outputs) * kind.bytes):
        values[:, lane] = place.view(kind.dtype)
    for register, lanes in zip(outputs, values, strict=True):
        if isinstance(register, Register):
            wide = register.type.bits > kind.bits
            wider = f"{'i' if kind.signed else 'u'}{register.type.bytes}"
            warp.write(made, register, lanes.astype(wider) if wide else lanes)


@executes("st")
def store(warp: WarpState, made: Instruction) -> None:
    """Lanes in order, so the highest of several at one place stays."""
    kind = made.type
    sources = _elements(made.operands["a"])
    values = np.array([warp.read(source, kind) for source in sources])
    for lane, place in list(_places(warp, made, len(sources) * kind.bytes)):
        place.view(kind.dtype)[:] = values[:, lane]


def _places(warp: WarpState, made: Instruction, size: int) -> list[tuple[int, Any]]:
    """Each active lane with the bytes that it names."""
    address = made.operands["m"]
    assert isinstance(address, Address)
    space = made.slots.get("space", "generic")
    if space == "param":
        assert isinstance(address.base, VariableAddress)
        offset = warp.parameter(address.base.variable) + address.offset
        data = warp.block.parameters[offset : offset + size]
        return [(lane, data) for lane in warp.lanes()]
    addresses = warp.addresses(address)
    if warp.grid.observer is not None:
        warp.grid.observer.accessed(warp, made, space, addresses, size)
    return [
        (lane, warp.bytes(made, space, lane, int(addresses[lane]), size)) for lane in warp.lanes()
    ]
