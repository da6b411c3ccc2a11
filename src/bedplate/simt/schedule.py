"""Schedules of the lanes of a warp, and which kernels need more than the plain one.

Lowest block first is exact for kernels whose lanes do not wait for each other. A loop that
waits for what another lane writes would never end by it: `waits` finds such kernels, which
then run by `its`, where lanes take turns. The choice is made before anything runs.

    its          lowest block first; after `TURNS` ways back the blocks above get a turn,
                 then the other warps
    ipdom        one stack a warp: lanes that part meet at the nearest block that all of
                 their paths pass, and run one side after the other
    adversarial  a block and lanes of it by lot, also between two memory accesses

A spinning loop under `ipdom` whose lanes are the same for `PATIENCE` turns, while others
of the warp wait on the stack, counts as a deadlock: they can never run.
"""

from __future__ import annotations

from typing import Literal, cast, get_args

from bedplate.simt.graph import Cut, Graph, is_sync
from bedplate.simt.uniformity import Uniformity

Schedule = Literal["its", "ipdom", "adversarial"]
Order = Literal["lowest", "its", "ipdom", "adversarial"]
"""What a kernel is compiled for; `lowest` is `its` where no lane waits for another."""
SCHEDULES: tuple[Schedule, ...] = cast("tuple[Schedule, ...]", get_args(Schedule))
CUTS: dict[Order, Cut] = {
    "lowest": "plain",
    "its": "sync",
    "ipdom": "plain",
    "adversarial": "memory",
}
TURNS = 64
"""Ways back that a warp takes before its other lanes, and then other warps, get a turn."""
PATIENCE = 1 << 11
DEEPEST = 80
"""Entries of a stack: a split leaves at most two, and 32 lanes split 31 times."""
SEEDS = (0x9E3779B1, 0x85EBCA6B, 0xC2B2AE35, 0x27D4EB2F)


def seeded(seed: int, block: int, warp: int) -> int:
    """Where the lots of a warp begin."""
    made = (seed * SEEDS[0]) ^ (block * SEEDS[1] + warp * SEEDS[2] + SEEDS[3])
    return made & 0xFFFFFFFF or 1


def drawn(state: int) -> int:
    """The next lot.

    Source: Marsaglia, "Xorshift RNGs" (2003).
    """
    state ^= state << 13 & 0xFFFFFFFF
    state ^= state >> 17
    return state ^ (state << 5 & 0xFFFFFFFF)


def spinning(graph: Graph) -> frozenset[int]:
    """The blocks of loops that a value of memory which others change may end or prolong."""
    tainted: set[int] = set()
    changed = True
    while changed:
        changed = False
        for block in graph.blocks:
            for made in block.all:
                reads = {register.index for register in made.reads}
                shared = made.form.group == "atomic" or (
                    made.opcode == "ld" and made.has("volatile")
                )
                if shared or reads & tainted:
                    fresh = {register.index for register, _ in made.outputs} - tainted
                    tainted |= fresh
                    changed |= bool(fresh)
    found: set[int] = set()
    for loop in graph.loops.values():
        guards = (graph.blocks[b].guard for b in loop)
        if any(guard is not None and guard.register.index in tainted for guard in guards):
            found |= loop
    return frozenset(found)


def waits(graph: Graph, uniformity: Uniformity) -> bool:
    """Whether lanes may wait for each other: by a loop, or by a `.sync` in a split loop."""
    if spinning(graph):
        return True
    inside = uniformity.divergence.inside
    looped = {block for loop in graph.loops.values() for block in loop}
    return any(
        block.index in looped and inside >> block.index & 1 and any(map(is_sync, block.all))
        for block in graph.blocks
    )
