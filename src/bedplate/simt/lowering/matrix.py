"""Matrix operations: fragments of 16-bit numbers across the lanes of a warp.

Lane L has row g = L / 4 and the columns 2t, 2t + 1 with t = L mod 4 of each 8 by 8 part,
as the ISA draws it for `mma.m16n8k16`; `wmma`, whose layout is not specified, takes the
same, with the second copies of its operands in registers that nothing reads. A sum is made
in f64, the addend first and k rising, and rounded once to f32: devices round more often.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from bedplate.simt import abi, lanes, resolve
from bedplate.simt.emitter import Emitter
from bedplate.simt.lanes import F16, F32, F64, I16, I32, I64
from bedplate.simt.lowering.base import lowers
from bedplate.simt.lowering.memory import Access, address_lanes, load_access
from bedplate.simt.module import Address, Instruction, Operand, Register, Vector
from bedplate.simt.resolve import likely
from bedplate.simt.scalar import LANES, SCALARS

GROUP = tuple(lane // 4 for lane in range(LANES))
"""g of each lane."""
PAIR = tuple(lane % 4 for lane in range(LANES))
"""t of each lane."""
STRIDE = 16
"""Elements from row to row when `wmma` does not say."""


def elements(made: Instruction, name: str) -> tuple[Operand | None, ...]:
    """The operands between braces."""
    operand = made.operands[name]
    assert isinstance(operand, Vector)
    return operand.elements


def fragment(which: str) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """For each register of a `wmma` operand, which row and which element in it lanes have.

    Rows of `b` are its columns: what lies together in memory. Registers beyond the list
    repeat its first four.
    """
    pairs = tuple(2 * t for t in PAIR)
    if which in "ab":
        parts = (
            [(0, 0), (8, 0), (0, 8), (8, 8)] if which == "a" else [(0, 0), (0, 8), (8, 0), (8, 8)]
        )
        return [
            (tuple(g + row for g in GROUP), tuple(p + column for p in pairs))
            for row, column in parts
        ]
    return [
        (tuple(g + row for g in GROUP), tuple(p + column + odd for p in pairs))
        for column in (0, 8)
        for row in (0, 8)
        for odd in (0, 1)
    ]


def _whole_warp(e: Emitter, made: Instruction) -> None:
    """These operations are for all lanes; a fault when one that lives is not here."""
    builder = e.builder
    missing = builder.and_(builder.load(e.live), builder.not_(e.mask))
    good = builder.icmp_unsigned("==", missing, ir.Constant(I32, 0))
    yes = e.function.append_basic_block("together")
    no = e.function.append_basic_block("apart")
    likely(builder, good, yes, no)
    e.builder = ir.IRBuilder(no)
    e.fault(abi.Code.SYNC, made, e.mask, None)
    e.builder = ir.IRBuilder(yes)


def _picked(e: Emitter, choices: Sequence[Any], which: Sequence[int]) -> Any:
    """Lane L of the choice `which[L]`."""
    result = choices[0]
    for number, choice in enumerate(choices[1:], 1):
        mine = ir.Constant(lanes.MASK, [int(w == number) for w in which])
        result = e.builder.select(mine, choice, result)
    return result


@lowers("ldmatrix")
def load_matrices(e: Emitter, made: Instruction) -> None:
    """Lanes 8i to 8i + 7 name the rows of matrix i, 16 bytes each."""
    _whole_warp(e, made)
    outputs, address = elements(made, "d"), made.operands["m"]
    assert isinstance(address, Address)
    guard, kept = e.guard, e.block_mask
    rows = ir.Constant(I32, (1 << 8 * len(outputs)) - 1)
    e.block_mask, e.guard = e.builder.and_(e.mask, rows), None
    words = load_access(e, made, "shared", 32, 4, address)
    e.block_mask, e.guard = kept, guard
    for number, output in enumerate(outputs):
        if made.has("trans"):
            halves = []
            for odd in (0, 1):
                order = [8 * number + 2 * t + odd for t in PAIR]
                moved = [lanes.shuffled(e.builder, word, order) for word in words]
                word = _picked(e, moved, [g // 2 for g in GROUP])
                shift = ir.Constant(word.type, [16 * (g % 2) for g in GROUP])
                half = e.builder.lshr(word, shift)
                halves.append(e.builder.and_(half, lanes.like(half, 0xFFFF)))
            high = e.builder.shl(halves[1], lanes.like(halves[1], 16))
            value = e.builder.or_(halves[0], high)
        else:
            order = [8 * number + g for g in GROUP]
            moved = [lanes.shuffled(e.builder, word, order) for word in words]
            value = _picked(e, moved, PAIR)
        if isinstance(output, Register):
            e.write(output, value)


def _halves(e: Emitter, operand: Any) -> tuple[Any, Any]:
    """The two numbers in a register, as f32."""
    builder = e.builder
    bits = e.vector(operand, SCALARS["b32"])
    found = []
    for shift in (0, 16):
        half = builder.trunc(builder.lshr(bits, lanes.like(bits, shift)), lanes.vector(I16))
        found.append(builder.fpext(lanes.cast(builder, half, F16), lanes.vector(F32)))
    return found[0], found[1]


def _multiply(e: Emitter, a: Sequence[Any], b: Sequence[Any], c: Sequence[Any]) -> list[Any]:
    """16 by 8 from 16 by 16 and 16 by 8: four results a lane."""
    builder = e.builder
    left, right = [_halves(e, operand) for operand in a], [_halves(e, operand) for operand in b]
    results = []
    for number, addend in enumerate(c):
        row, odd = number // 2, number % 2
        total = builder.fpext(e.vector(addend, SCALARS["f32"]), lanes.vector(F64))
        for k in range(16):
            pair = k % 8 // 2
            one = left[row + k // 8 * 2][k % 2]
            other = right[k // 8][k % 2]
            one = lanes.shuffled(builder, one, [4 * g + pair for g in GROUP])
            other = lanes.shuffled(builder, other, [4 * (2 * t + odd) + pair for t in PAIR])
            # Two numbers of 11 bits: the product is exact in f32.
            product = builder.fpext(builder.fmul(one, other), lanes.vector(F64))
            total = builder.fadd(total, product)
        results.append(builder.fptrunc(total, lanes.vector(F32)))
    return results


def _give(e: Emitter, made: Instruction, values: Sequence[Any]) -> None:
    for register, value in zip(elements(made, "d"), values, strict=True):
        if isinstance(register, Register):
            e.write(register, value, number=made.form.arithmetic)


@lowers("mma")
def multiply(e: Emitter, made: Instruction) -> None:
    """One product of 16 by 8."""
    _whole_warp(e, made)
    _give(e, made, _multiply(e, *(elements(made, name) for name in "abc")))


@lowers("wmma")
def warp_matrix(e: Emitter, made: Instruction) -> None:
    """Load, multiply or store 16 by 16."""
    _whole_warp(e, made)
    if "mma" in made.slots:
        a, b, c = (elements(made, name) for name in "abc")
        left = _multiply(e, a[:4], b[:2], c[:4])
        _give(e, made, left + _multiply(e, a[:4], b[2:4], c[4:]))
        return
    which = next(name for name in "abcd" if name in made.slots)
    size = 2 if which in "ab" else 4
    space = made.slots.get("space", "generic")
    access = Access(made, space, 32, 1)
    places = [_places(e, made, *part, size) for part in fragment(which)]
    if which != "d":
        loaded = [resolve.load(e, access, place, e.mask)[0] for place in places]
        _give(e, made, loaded if which == "c" else loaded + loaded)
        return
    for place, operand in zip(places, elements(made, "a"), strict=True):
        value = e.vector(operand, SCALARS["b32"])  # type: ignore[arg-type]
        resolve.store(e, access, place, e.mask, [value])


def _places(
    e: Emitter, made: Instruction, rows: Sequence[int], columns: Sequence[int], size: int
) -> Any:
    """The addresses of elements of a matrix whose rows are `s` elements apart."""
    address, builder = made.operands["m"], e.builder
    assert isinstance(address, Address)
    base = address_lanes(e, address)
    stride: Any = lanes.like(base, STRIDE)
    operand = made.operands.get("s")
    if operand is not None:
        stride = builder.zext(e.vector(operand, SCALARS["u32"]), lanes.vector(I64))
    offset = builder.mul(stride, ir.Constant(base.type, list(rows)))
    offset = builder.add(offset, ir.Constant(base.type, list(columns)))
    return builder.add(base, builder.mul(offset, lanes.like(offset, size)))
