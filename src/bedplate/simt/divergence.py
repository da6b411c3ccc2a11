"""Where lanes may wait while others run, given the branches that may split a warp.

A branch whose lanes disagree sends them into a region: everything that can run before
the join, the first block behind the region that all paths pass. While a block of the
region runs, other lanes of the warp can only stand at higher blocks of the region or at
its join, since the lowest block runs first (`graph`). That pair of sets is what decides
whether a write must leave other lanes' values alone, and whether a register whose value
all lanes agree on may be kept once for all of them (`uniformity`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bedplate.simt.graph import Graph
from bedplate.simt.liveness import Liveness, members


@dataclass(frozen=True)
class Divergence:
    """For each block: the blocks where lanes may wait, and registers these still need.

    `inside` is the set of blocks that may run with a part of the live lanes.
    """

    waiting: list[int]
    frozen: list[int]
    inside: int


def postdominators(graph: Graph) -> list[int]:
    """The nearest block that every path to the end passes; `len(blocks)` is the end.

    From a block that never ends, the end counts as one step away.

    Source: Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm" (2001).
    """
    end = len(graph.blocks)
    successors = [list(block.successors) for block in graph.blocks]
    for block in graph.blocks:
        leaves = block.ending == "trap" or -1 in (block.follow, block.target)
        if leaves or not successors[block.index]:
            successors[block.index].append(end)
    for index in _endless(successors, end):
        successors[index].append(end)
    order = _backward_order(successors, end)
    rank = {node: position for position, node in enumerate(order)}
    parent = {end: end}
    changed = True
    while changed:
        changed = False
        for node in order[1:]:
            known = [successor for successor in successors[node] if successor in parent]
            best = known[0]  # in this order a node comes after one of its successors
            for successor in known[1:]:
                best = _meet(parent, rank, best, successor)
            if parent.get(node) != best:
                parent[node] = best
                changed = True
    return [parent[node] for node in range(end)]


def _meet(parent: dict[int, int], rank: dict[int, int], one: int, other: int) -> int:
    """The nearest common ancestor; a parent's rank is lower."""
    while one != other:
        if rank[one] > rank[other]:
            one = parent[one]
        else:
            other = parent[other]
    return one


def _endless(successors: list[list[int]], end: int) -> list[int]:
    """Blocks that no path leads from to the end; one step is added to each."""
    before: list[list[int]] = [[] for _ in range(end + 1)]
    for node, targets in enumerate(successors):
        for target in targets:
            before[target].append(node)
    seen, stack = {end}, [end]
    while stack:
        for node in before[stack.pop()]:
            if node not in seen:
                seen.add(node)
                stack.append(node)
    return [node for node in range(end) if node not in seen]


def _backward_order(successors: list[list[int]], end: int) -> list[int]:
    """Reverse postorder of the reversed graph, from the end."""
    before: list[list[int]] = [[] for _ in range(end + 1)]
    for node, targets in enumerate(successors):
        for target in targets:
            before[target].append(node)
    order: list[int] = []
    seen = {end}
    stack = [(end, iter(before[end]))]
    while stack:
        node, rest = stack[-1]
        for following in rest:
            if following not in seen:
                seen.add(following)
                stack.append((following, iter(before[following])))
                break
        else:
            stack.pop()
            order.append(node)
    return order[::-1]


class Regions:
    """The region and join of each branch, computed when asked."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.end = len(graph.blocks)
        self.after = postdominators(graph)
        self.resumes = sum(1 << block for block in graph.resumes)
        self._known: dict[int, tuple[int, int]] = {}

    def of(self, branch: int) -> tuple[int, int]:
        """The region of a block's branch as a set, and its join (`len(blocks)`: none)."""
        if branch not in self._known:
            self._known[branch] = self._find(branch)
        return self._known[branch]

    def _find(self, branch: int) -> tuple[int, int]:
        join = self.after[branch]
        while True:
            if self._between(branch, join) & self.resumes:
                # Lanes that wait at a barrier let higher blocks run, the join among them.
                return self._between(branch, self.end), self.end
            region = self._between(branch, join)
            # The join must stand behind the whole region, else it would run too early.
            if join == self.end or region.bit_length() <= join:
                return region, join
            join = self.after[join]

    def _between(self, branch: int, join: int) -> int:
        region = 0
        stack = list(self.graph.blocks[branch].successors)
        while stack:
            node = stack.pop()
            if node != join and not region >> node & 1:
                region |= 1 << node
                stack += self.graph.blocks[node].successors
        return region


def analyse(regions: Regions, liveness: Liveness, divergent: Iterable[int]) -> Divergence:
    """What may wait where, when the branches of the blocks `divergent` split warps."""
    count = len(regions.graph.blocks)
    waiting, inside = [0] * count, 0
    for branch in divergent:
        if len(regions.graph.blocks[branch].successors) < 2:
            continue  # lanes leave for good; nobody waits
        region, join = regions.of(branch)
        inside |= region
        others = region | (1 << join if join < regions.end else 0)
        for block in members(region):
            if region & regions.resumes:
                waiting[block] |= others & ~(1 << block)
            else:
                waiting[block] |= others >> (block + 1) << (block + 1)
    frozen = []
    for block in range(count):
        needed = 0
        for other in members(waiting[block]):
            needed |= liveness.at_start[other]
        frozen.append(needed)
    return Divergence(waiting, frozen, inside)


def anywhere(graph: Graph, liveness: Liveness) -> Divergence:
    """Lanes may wait at every block, the running one too: for schedules of other orders."""
    count = len(graph.blocks)
    needed = 0
    for live in liveness.at_start:
        needed |= live
    every = (1 << count) - 1
    return Divergence([every] * count, [needed] * count, every)
