"""Registers and their parts."""

from __future__ import annotations

import numpy as np

from bedplate.simt.interpreter.base import executes
from bedplate.simt.interpreter.engine import WarpState
from bedplate.simt.module import Instruction, Register, Vector


@executes("mov.pack")
def pack(warp: WarpState, made: Instruction) -> None:
    """The first part lies lowest."""
    parts, output = made.operands["a"], made.operands["d"]
    assert isinstance(parts, Vector)
    assert isinstance(output, Register)
    columns = [warp.read(item, made.types["a"]) for item in parts.elements if item is not None]
    together = np.ascontiguousarray(np.stack(columns, axis=1))
    warp.write(made, output, together.view(f"u{made.types['d'].bytes}")[:, 0])


@executes("mov.unpack")
def unpack(warp: WarpState, made: Instruction) -> None:
    """All parts are of the value before, though a part may be the same register."""
    parts, source = made.operands["d"], made.operands["a"]
    assert isinstance(parts, Vector)
    bits = np.ascontiguousarray(warp.read(source, made.types["a"]))  # type: ignore[arg-type]
    columns = bits.view(f"u{made.types['d'].bytes}").reshape(len(bits), -1)
    for item, column in zip(parts.elements, columns.T.copy(), strict=True):
        if isinstance(item, Register):
            warp.write(made, item, column)
