"""Copies from global into shared memory, done at once."""

from __future__ import annotations

import numpy as np

from bedplate.simt.interpreter.base import executes
from bedplate.simt.interpreter.engine import WarpState
from bedplate.simt.lowering.copy import copied_words
from bedplate.simt.module import Address, Instruction
from bedplate.simt.scalar import LANES, SCALARS


@executes("cp")
def copy(warp: WarpState, made: Instruction) -> None:
    """All lanes read, then all write."""
    source, target = made.operands.get("m"), made.operands.get("d")
    if not isinstance(source, Address) or not isinstance(target, Address):
        return
    size, given = 4 * copied_words(made), made.operands.get("s")
    kept = [size] * LANES
    if given is not None:
        kept = warp.read(given, SCALARS["u32"]).tolist()
    read = {lane: np.zeros(size, np.uint8) for lane in range(LANES)}
    for space, address in (("global", source), ("shared", target)):
        addresses = warp.addresses(address)
        if warp.grid.observer is not None:
            warp.grid.observer.accessed(warp, made, space, addresses, size)
        for lane in warp.lanes():
            if space == "global" and not kept[lane]:
                continue
            place = warp.bytes(made, space, lane, int(addresses[lane]), size)
            if space == "global":
                read[lane][: kept[lane]] = place[: kept[lane]]
            else:
                place[:] = read[lane]
