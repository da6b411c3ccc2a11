"""Matrix operations as sums over rows and columns; lanes hold parts as the ISA draws them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bedplate.simt import abi
from bedplate.simt.interpreter.base import Lanes, executes
from bedplate.simt.interpreter.engine import Fault, WarpState
from bedplate.simt.lowering.matrix import STRIDE, elements, fragment
from bedplate.simt.module import Address, Instruction, Operand, Register
from bedplate.simt.scalar import LANES, SCALARS

LANE = np.arange(LANES)


def _whole_warp(warp: WarpState, made: Instruction) -> None:
    if warp.live & ~warp.mask:
        lane = max((warp.mask & -warp.mask).bit_length() - 1, 0)
        raise Fault(abi.Code.SYNC, made, warp.index, lane)


def _give(warp: WarpState, made: Instruction, values: Sequence[Lanes]) -> None:
    for register, value in zip(elements(made, "d"), values, strict=True):
        if isinstance(register, Register):
            warp.write(made, register, value)


@executes("ldmatrix")
def load_matrices(warp: WarpState, made: Instruction) -> None:
    """Lanes 8i to 8i + 7 name the rows of matrix i, 16 bytes each."""
    _whole_warp(warp, made)
    address, outputs = made.operands["m"], elements(made, "d")
    assert isinstance(address, Address)
    addresses = warp.addresses(address)
    kept, warp.mask = warp.mask, warp.mask & (1 << 8 * len(outputs)) - 1
    if warp.grid.observer is not None:
        warp.grid.observer.accessed(warp, made, "shared", addresses, 16)
    rows = np.zeros((LANES, 8), np.uint16)
    for lane in warp.lanes():
        place = warp.bytes(made, "shared", lane, int(addresses[lane]), 16)
        rows[lane] = place.view(np.uint16)
    warp.mask = kept
    for number, output in enumerate(outputs):
        matrix = rows[8 * number : 8 * number + 8]
        matrix = matrix.T if made.has("trans") else matrix
        pairs = np.stack([matrix[LANE // 4, 2 * (LANE % 4) + odd] for odd in (0, 1)], axis=1)
        if isinstance(output, Register):
            warp.write(made, output, np.ascontiguousarray(pairs).view(np.uint32)[:, 0])


def _matrix(
    warp: WarpState, registers: Sequence[Operand | None], shape: tuple[int, int], which: str
) -> Any:
    """Rows of f16 from registers of two numbers; a row of `b` is one of its columns."""
    made = np.zeros(shape, np.float64)
    for register, (rows, columns) in zip(registers, fragment(which), strict=False):
        assert register is not None
        bits = warp.read(register, SCALARS["b32"])
        halves = np.ascontiguousarray(bits).view(np.float16).reshape(LANES, 2)
        for odd in (0, 1):
            made[np.array(rows), np.array(columns) + odd] = halves[:, odd]
    return made


def _product(a: Any, columns: Any, c: Any) -> Any:
    """c + a b in f64, k rising."""
    total = c.astype(np.float64)
    for k in range(16):
        total = total + a[:, k : k + 1] * columns[:, k]
    return total.astype(np.float32)


def _sums(warp: WarpState, made: Instruction, width: int) -> None:
    """`width` columns of results."""
    a, b, c = (elements(made, name) for name in "abc")
    places = fragment("d")[: width // 2]
    addend = np.zeros((16, width), np.float32)
    for register, (rows, columns) in zip(c, places, strict=True):
        assert register is not None
        addend[np.array(rows), np.array(columns)] = warp.read(register, SCALARS["f32"])
    left = _matrix(warp, a[:4], (16, 16), "a")
    right = _matrix(warp, b[: width // 4], (width, 16), "b")
    total = _product(left, right, addend)
    _give(warp, made, [total[np.array(rows), np.array(columns)] for rows, columns in places])


@executes("mma")
def multiply(warp: WarpState, made: Instruction) -> None:
    """One product of 16 by 8."""
    _whole_warp(warp, made)
    _sums(warp, made, 8)


@executes("wmma")
def warp_matrix(warp: WarpState, made: Instruction) -> None:
    """Load, multiply or store 16 by 16."""
    _whole_warp(warp, made)
    if "mma" in made.slots:
        _sums(warp, made, 16)
        return
    which = next(name for name in "abcd" if name in made.slots)
    size = 2 if which in "ab" else 4
    address, operand = made.operands["m"], made.operands.get("s")
    assert isinstance(address, Address)
    base = warp.addresses(address)
    stride = np.full(LANES, STRIDE, np.uint64)
    if operand is not None:
        stride = warp.read(operand, SCALARS["u32"]).astype(np.uint64)
    found = []
    for number, (rows, columns) in enumerate(fragment(which)):
        offset = stride * np.array(rows, np.uint64) + np.array(columns, np.uint64)
        addresses = base + offset * np.uint64(size)
        value = np.zeros(LANES, np.uint32)
        if which == "d":
            source = elements(made, "a")[number]
            assert source is not None
            value = warp.read(source, SCALARS["b32"])
        for lane in warp.lanes():
            space = made.slots.get("space", "generic")
            place = warp.bytes(made, space, lane, int(addresses[lane]), 4).view(np.uint32)
            if which == "d":
                place[0] = value[lane]
            else:
                value[lane] = place[0]
        found.append(value)
    if which != "d":
        _give(warp, made, found if which == "c" else found + found)
