"""`printf`: every active lane, the lowest first, into the grid's list of calls."""

from __future__ import annotations

import numpy as np

from bedplate.simt import abi, printing
from bedplate.simt.interpreter.base import executes
from bedplate.simt.interpreter.engine import Fault, WarpState
from bedplate.simt.module import Instruction, Register
from bedplate.simt.scalar import LANES, SCALARS


@executes("vprintf")
def vprintf(warp: WarpState, made: Instruction) -> None:
    """The number of arguments, or -1 without a format."""
    formats, arguments = (
        warp.read(operand, SCALARS["u64"])
        for name in "ab"
        if (operand := made.operands[name]) is not None
    )
    result = np.zeros(LANES, np.int32)
    for lane in warp.lanes():
        format_ = int(formats[lane])
        if not format_:
            result[lane] = -1
            continue
        count, size = printing.taken(_text(warp, made, lane, format_))
        first = int(arguments[lane])
        data = bytes(_byte(warp, made, lane, first + place) for place in range(size))
        thread = LANES * warp.index + lane
        warp.grid.printed.append(printing.Call(warp.block.number, thread, format_, data))
        result[lane] = count
    register = made.operands["d"]
    assert isinstance(register, Register)
    warp.write(made, register, result)


def _text(warp: WarpState, made: Instruction, lane: int, address: int) -> bytes:
    found = bytearray()
    while len(found) <= printing.MOST_FORMAT:
        byte = _byte(warp, made, lane, address + len(found))
        if not byte or len(found) == printing.MOST_FORMAT:
            break
        found.append(byte)
    return bytes(found)


def _byte(warp: WarpState, made: Instruction, lane: int, address: int) -> int:
    place = address % (1 << 64)
    found = warp.find("generic", lane, place, 1)
    if found is None:
        raise Fault(abi.Code.BOUNDS, made, warp.index, lane, place)
    return int(found[0])
