"""The control flow of a kernel: blocks in an order that both engines schedule by.

Lanes of a warp that disagree wait at blocks, and the lowest block that has lanes runs
next. So the order decides where lanes meet again: it is topological with every loop in
one piece, which puts the place where paths join behind all of the paths. A loop with
several ways back gets one empty block at its end where lanes wait for each other.

A branch to a block that only ends the thread is an exit at the branch: lanes that left
never come back, so what follows is as converged as before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bedplate.simt.module import Function, Guard, Instruction, Name

EXIT = -1
"""Where a thread goes that ends."""
Ending = Literal["jump", "branch", "barrier", "trap"]
Cut = Literal["plain", "sync", "memory"]
"""Where blocks begin besides labels: nowhere; at `.sync` operations; and at memory too."""


@dataclass
class Block:
    """Instructions that run in one go, then an ending.

    `jump` goes to `follow`; `branch` sends lanes with `guard` to `target`, the others to
    `follow`; `barrier` waits by `last` and goes on at `follow`; `trap` ends the launch.
    `last` is the instruction of the ending, None where text just runs on.
    """

    index: int
    instructions: list[Instruction]
    ending: Ending
    follow: int
    target: int | None = None
    guard: Guard | None = None
    last: Instruction | None = None

    @property
    def successors(self) -> tuple[int, ...]:
        """Blocks that may run next, without EXIT."""
        if self.ending == "trap":
            return ()
        both = (self.follow,) if self.target is None else (self.target, self.follow)
        return tuple(dict.fromkeys(index for index in both if index != EXIT))

    @property
    def all(self) -> list[Instruction]:
        """The instructions with the ending's."""
        return self.instructions if self.last is None else [*self.instructions, self.last]


@dataclass
class Graph:
    """The blocks of a function; `blocks[k].index == k`, block 0 is the entry.

    `loops` holds for each header the blocks of its loop, headers by index.
    """

    function: Function
    blocks: list[Block]
    loops: dict[int, frozenset[int]] = field(default_factory=dict)

    @property
    def resumes(self) -> list[int]:
        """The blocks where a warp goes on after it waited, without doubles."""
        return sorted({b.follow for b in self.blocks if b.ending == "barrier"} - {EXIT})

    def back_edges(self) -> list[tuple[int, int]]:
        """Edges that go back to a lower or the same block."""
        return [(b.index, s) for b in self.blocks for s in b.successors if s <= b.index]


def build(function: Function, cut: Cut = "plain") -> Graph:
    """The graph of a function."""
    blocks = _reachable(_without_exits(_cut(function, cut)))
    blocks, loops = _ordered(blocks)
    return Graph(function, blocks, loops)


def _cut(function: Function, cut: Cut) -> list[Block]:
    """Blocks in the order of the text."""
    code = function.instructions
    starts = {0, *function.labels.values()}
    for made in code:
        if cut != "plain" and is_sync(made):
            starts |= {made.number, made.number + 1}
        if cut == "memory" and made.form.group in ("memory", "atomic"):
            starts.add(made.number)
        if made.opcode in ("bra", "ret", "exit", "trap") or is_barrier(made):
            starts.add(made.number + 1)
            if made.guard is not None and (is_barrier(made) or made.opcode == "trap"):
                starts.add(made.number)  # the branch around it becomes a block's end
    order = sorted(start for start in starts if start < len(code))
    number = {start: index for index, start in enumerate(order)}
    blocks: list[Block] = []
    extra: list[Block] = []
    for index, start in enumerate(order):
        end = order[index + 1] if index + 1 < len(order) else len(code)
        follow = index + 1 if end < len(code) else EXIT
        body = list(code[start:end])
        block = Block(index, body, "jump", follow)
        blocks.append(block)
        last = body[-1]
        if last.opcode == "bra":
            target = last.operands["target"]
            assert isinstance(target, Name)
            place = function.labels[target.text]
            _end_by(block, last, number[place] if place < len(code) else EXIT)
        elif last.opcode in ("ret", "exit"):
            _end_by(block, last, EXIT)
        elif cut != "plain" and is_sync(last) and last.guard is not None:
            # Lanes without the guard go around; those with it wait at a block of their own.
            block.instructions.pop()
            inner = Block(len(order) + len(extra), [last], "jump", follow)
            extra.append(inner)
            block.ending, block.guard, block.target = "branch", last.guard, inner.index
        elif is_barrier(last) or last.opcode == "trap":
            block.instructions.pop()
            ending: Ending = "trap" if last.opcode == "trap" else "barrier"
            if ending == "barrier":
                # Only lanes that waited come here, so lanes at it are lanes that wait.
                # A reduction's result is written when the barrier lets go.
                results = [last] if last.outputs else []
                resume = Block(len(order) + len(extra), results, "jump", follow)
                extra.append(resume)
                follow = block.follow = resume.index
            if last.guard is None:
                block.ending, block.last = ending, last
            else:
                inner = Block(len(order) + len(extra), [], ending, follow, last=last)
                extra.append(inner)
                block.follow = index + 1 if end < len(code) else EXIT
                block.ending, block.guard, block.target = "branch", last.guard, inner.index
    return blocks + extra


def _end_by(block: Block, last: Instruction, target: int) -> None:
    block.instructions.pop()
    block.last = last
    if last.guard is None:
        block.follow = target
    else:
        block.ending, block.guard, block.target = "branch", last.guard, target


def is_barrier(made: Instruction) -> bool:
    """Whether a warp may have to wait for others at it."""
    return made.opcode in ("bar", "barrier") and "warp" not in made.slots


def is_sync(made: Instruction) -> bool:
    """Whether lanes wait at it for those that their masks name."""
    return made.form.group == "sync" and made.opcode != "activemask"


def _without_exits(blocks: list[Block]) -> list[Block]:
    """Branches to blocks that only end the thread become exits; those to one place, jumps."""
    ends = {
        b.index for b in blocks if b.ending == "jump" and b.follow == EXIT and not b.instructions
    }
    for block in blocks:
        if block.follow in ends:
            block.follow = EXIT
        if block.target in ends:
            block.target = EXIT
        if block.ending == "branch" and block.target == block.follow:
            block.ending, block.target, block.guard = "jump", None, None
    return blocks


def _reachable(blocks: list[Block]) -> list[Block]:
    seen, stack = {0}, [0]
    while stack:
        for successor in blocks[stack.pop()].successors:
            if successor not in seen:
                seen.add(successor)
                stack.append(successor)
    return [block for block in blocks if block.index in seen]


def _ordered(blocks: list[Block]) -> tuple[list[Block], dict[int, frozenset[int]]]:
    """The blocks renumbered, with a block added to loops of several ways back."""
    by_index = {block.index: block for block in blocks}
    loops: dict[int, set[int]] = {}
    fresh = max(by_index) + 1

    def place(members: set[int], header: int) -> list[int]:
        """`members` in order; edges into `header` do not count."""
        nonlocal fresh
        placed: list[int] = []
        for component in _components(by_index, members, header):
            inner = set(component)
            entries = [n for n in component if n == header or _entered(by_index, n, inner)]
            head = min(entries, default=min(component))
            backs = [n for n in component if head in by_index[n].successors]
            if head == header or not backs or (len(component) == 1 and not backs):
                placed += component
                continue
            order = place(inner, head)
            if len(backs) > 1:
                latch = Block(fresh, [], "jump", head)
                fresh += 1
                by_index[latch.index] = latch
                for back in backs:
                    _redirect(by_index[back], head, latch.index)
                order.append(latch.index)
            loops[head] = set(order)
            placed += order
        return placed

    order = place(set(by_index), 0) if 0 in by_index else []
    # A loop to the entry itself would hide in `place`; give the entry no way back.
    number = {old: new for new, old in enumerate(order)}
    number[EXIT] = EXIT
    result = []
    for old in order:
        block = by_index[old]
        block.index = number[old]
        # What follows a trap may be reached by nobody.
        block.follow = number.get(block.follow, EXIT)
        block.target = None if block.target is None else number[block.target]
        result.append(block)
    named = {
        number[head]: frozenset(number[member] for member in members)
        for head, members in loops.items()
    }
    # A loop inside got its latch after the outer one was listed: outer holds inner.
    for head, members in named.items():
        for other, outer in named.items():
            if other != head and head in outer:
                named[other] = outer | members
    return result, named


def _entered(blocks: dict[int, Block], node: int, inner: set[int]) -> bool:
    return any(node in b.successors for b in blocks.values() if b.index not in inner)


def _redirect(block: Block, old: int, new: int) -> None:
    if block.follow == old:
        block.follow = new
    if block.target == old:
        block.target = new


def _components(blocks: dict[int, Block], members: set[int], header: int) -> list[list[int]]:
    """Strongly connected components of `members` in topological order, text order first.

    Edges into `header` are left out. Tarjan's algorithm without recursion, then Kahn's.
    """

    def successors(node: int) -> list[int]:
        return [s for s in blocks[node].successors if s in members and s != header]

    component = _tarjan(sorted(members), successors)
    groups: dict[int, list[int]] = {}
    for node in sorted(members):
        groups.setdefault(component[node], []).append(node)
    waiting = dict.fromkeys(groups, 0)
    edges: dict[int, set[int]] = {group: set() for group in groups}
    for node in members:
        for successor in successors(node):
            if component[successor] != component[node]:
                edges[component[node]].add(component[successor])
    for targets in edges.values():
        for target in targets:
            waiting[target] += 1
    ready = [group for group, count in waiting.items() if not count]
    result = []
    while ready:
        chosen = min(ready, key=lambda group: groups[group][0])
        ready.remove(chosen)
        result.append(groups[chosen])
        for target in edges[chosen]:
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return result


def _tarjan(nodes: Sequence[int], successors: object) -> dict[int, int]:
    """Node to the number of its component."""
    assert callable(successors)
    low: dict[int, int] = {}
    seen: dict[int, int] = {}
    component: dict[int, int] = {}
    stack: list[int] = []
    for root in nodes:
        if root in seen:
            continue
        work: list[tuple[int, Iterable[int]]] = []

        def enter(node: int) -> None:
            seen[node] = low[node] = len(seen)
            stack.append(node)
            work.append((node, iter(successors(node))))  # noqa: B023 - used in this turn only

        enter(root)
        while work:
            node, rest = work[-1]
            for successor in rest:
                if successor not in seen:
                    enter(successor)
                    break
                if successor not in component:
                    low[node] = min(low[node], seen[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == seen[node]:
                    while True:
                        member = stack.pop()
                        component[member] = node
                        if member == node:
                            break
    return component
