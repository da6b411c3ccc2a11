"""Copies from global into shared memory, done at once."""

from __future__ import annotations

from bedplate.simt.interpreter.base import executes
from bedplate.simt.interpreter.engine import WarpState
from bedplate.simt.lowering.copy import copied_words
from bedplate.simt.module import Address, Instruction


@executes("cp")
def copy(warp: WarpState, made: Instruction) -> None:
    """All lanes read, then all write."""
    source, target = made.operands.get("m"), made.operands.get("d")
    if not isinstance(source, Address) or not isinstance(target, Address):
        return
    size = 4 * copied_words(made)
    read = {}
    for space, address in (("global", source), ("shared", target)):
        addresses = warp.addresses(address)
        if warp.grid.observer is not None:
            warp.grid.observer.accessed(warp, made, space, addresses, size)
        for lane in warp.lanes():
            place = warp.bytes(made, space, lane, int(addresses[lane]), size)
            if space == "global":
                read[lane] = place.copy()
            else:
                place[:] = read[lane]
