"""Copies from global into shared memory: done at once, so waiting for them needs nothing."""

from __future__ import annotations

from bedplate.simt.emitter import Emitter
from bedplate.simt.lowering.base import lowers
from bedplate.simt.lowering.memory import load_access, store_access
from bedplate.simt.module import Address, Immediate, Instruction


@lowers("cp")
def copy(e: Emitter, made: Instruction) -> None:
    """All lanes read, then all write."""
    source, target = made.operands.get("m"), made.operands.get("d")
    if not isinstance(source, Address) or not isinstance(target, Address):
        return
    words = copied_words(made)
    values = load_access(e, made, "global", 32, words, source)
    store_access(e, made, "shared", 32, target, values)


def copied_words(made: Instruction) -> int:
    """Words of four bytes that a lane copies."""
    size = made.operands["n"]
    assert isinstance(size, Immediate), "the parser takes only a constant here"
    return size.bits // 4
