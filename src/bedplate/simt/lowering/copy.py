"""Copies from global into shared memory: done at once, so waiting for them needs nothing."""

from __future__ import annotations

from typing import Any

from bedplate.simt import lanes
from bedplate.simt.emitter import Emitter
from bedplate.simt.lowering.base import lowers
from bedplate.simt.lowering.memory import load_access, store_access
from bedplate.simt.module import Address, Immediate, Instruction
from bedplate.simt.scalar import SCALARS


@lowers("cp")
def copy(e: Emitter, made: Instruction) -> None:
    """All lanes read, then all write."""
    source, target = made.operands.get("m"), made.operands.get("d")
    if not isinstance(source, Address) or not isinstance(target, Address):
        return
    words, size = copied_words(made), made.operands.get("s")
    if size is None or size == made.operands["n"]:
        values = load_access(e, made, "global", 32, words, source)
    else:
        values = _part(e, made, words, source, e.vector(size, SCALARS["u32"]))
    store_access(e, made, "shared", 32, target, values)


def _part(e: Emitter, made: Instruction, words: int, source: Address, size: Any) -> list[Any]:
    """The first `size` bytes, zeros behind them; lanes that copy none read nothing."""
    builder, guard, kept = e.builder, e.guard, e.block_mask
    some = lanes.mask_bits(builder, builder.icmp_unsigned("!=", size, lanes.like(size, 0)))
    e.block_mask, e.guard = builder.and_(e.mask, some), None
    values = load_access(e, made, "global", 32, words, source)
    e.block_mask, e.guard = kept, guard
    builder, found = e.builder, []
    for number, value in enumerate(values):
        left = lanes.intrinsic(builder, "usub.sat", [size, lanes.like(size, 4 * number)])
        whole = builder.icmp_unsigned(">=", left, lanes.like(left, 4))
        bits = builder.and_(builder.shl(left, lanes.like(left, 3)), lanes.like(left, 31))
        one = lanes.like(left, 1)
        below = builder.sub(builder.shl(one, bits), one)
        below = builder.select(whole, lanes.like(left, 0xFFFFFFFF), below)
        found.append(builder.and_(value, below))
    return found


def copied_words(made: Instruction) -> int:
    """Words of four bytes that a lane copies."""
    size = made.operands["n"]
    assert isinstance(size, Immediate), "the parser takes only a constant here"
    return size.bits // 4
