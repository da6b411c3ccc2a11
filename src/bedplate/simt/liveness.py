"""Which registers a thread still needs where: the usual backward analysis, on bit sets.

A set of registers is a Python integer with a bit for each index. A guarded write does
not end a register's life, because the lanes without the guard keep the old value.
"""

from __future__ import annotations

from dataclasses import dataclass

from bedplate.simt.graph import Block, Graph


@dataclass(frozen=True)
class Liveness:
    """For each block, what is needed at its start and at its end."""

    at_start: list[int]
    at_end: list[int]


def analyse(graph: Graph) -> Liveness:
    """Both sets of every block."""
    effects = [_effect(block) for block in graph.blocks]
    start = [0] * len(graph.blocks)
    end = [0] * len(graph.blocks)
    changed = True
    while changed:
        changed = False
        for block in reversed(graph.blocks):
            live = 0
            for successor in block.successors:
                live |= start[successor]
            end[block.index] = live
            used, killed = effects[block.index]
            before = used | (live & ~killed)
            if before != start[block.index]:
                start[block.index] = before
                changed = True
    return Liveness(start, end)


def _effect(block: Block) -> tuple[int, int]:
    """Registers read before a write, and registers surely written."""
    used = killed = 0
    for made in block.all:
        for register in made.reads:
            used |= (1 << register.index) & ~killed
        for register, _ in made.outputs:
            if made.guard is None:
                killed |= 1 << register.index
            else:
                used |= (1 << register.index) & ~killed
    if block.guard is not None:
        used |= (1 << block.guard.register.index) & ~killed
    return used, killed


def members(bits: int) -> list[int]:
    """The indices in a set."""
    found = []
    while bits:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return found
