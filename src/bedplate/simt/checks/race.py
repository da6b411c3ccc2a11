"""Races: two threads at one byte, one of them writing, and nothing that orders them.

Within a block each access is compared with the write before it, and each read with the
write after it; if any two accesses of a byte race, then so does one of these pairs, because
order is transitive. Atomics are not ordered by each other, so they are compared with all
plain accesses. Blocks are never ordered, so for those it is enough to remember who wrote
and who read a byte last.

Atomics do not race with atomics. In a kernel with a fence they order: threads of a block
by who came to an atomic first, and all of a block after earlier ones at the same atomic. A
missed race is better here than a false one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bedplate.simt.checks.clocks import Order
from bedplate.simt.checks.rows import GLOBAL, Array, Rows

MIXED = 1 << 22
"""Pairs of atomic and plain accesses of a block that are looked at; then only neighbours.

Some 0.2 GB of arrays."""
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Race:
    """The earlier and the later row; `blocks` when the earlier one is of that other block."""

    one: int
    other: int
    same_value: bool
    count: int
    block: int | None = None
    """The block of `one`; None: the same as of `other`."""
    instruction: int = -1
    """Of `one`, when it is of another block."""
    thread: int = -1
    wrote: bool = False


def within(order: Order, chosen: Array, granule: int, *, fenced: bool) -> Iterator[Race]:
    """The races of one space in a block; rows are places in `order.rows`."""
    rows = order.rows
    places, key = expanded(rows, chosen, granule)
    turn = np.argsort(key, kind="stable")
    places, key = places[turn], key[turn]
    count = len(places)
    if not count:
        return
    index = np.arange(count)
    start = np.concatenate([[True], key[1:] != key[:-1]])
    first = np.maximum.accumulate(np.where(start, index, 0))
    ends = np.minimum.accumulate(np.where(np.append(start[1:], True), index, count)[::-1])[::-1]
    write = rows.write[places]
    before = np.concatenate([[-1], np.maximum.accumulate(np.where(write, index, -1))[:-1]])
    after = np.append(np.minimum.accumulate(np.where(write, index, count)[::-1])[::-1][1:], count)
    atomic = rows.atomic[places]
    plain_write = np.full(count, -1)
    plain_write[1:] = np.maximum.accumulate(np.where(write & ~atomic, index, -1))[:-1]
    plain = np.full(count, count)
    plain[:-1] = np.minimum.accumulate(np.where(~atomic, index, count)[::-1])[::-1][1:]
    pairs = [
        (before, index, before >= first),
        (plain_write, index, atomic & (plain_write >= first)),
        (index, after, ~write & (after <= ends)),
        # Atomics do not order each other, so each looks for the next plain access itself.
        (index, plain, atomic & (plain <= ends)),
    ]
    mixed = _mixed(atomic, np.flatnonzero(start), count)
    one = places[np.concatenate([*(a[good] for a, _, good in pairs), mixed[0]])]
    other = places[np.concatenate([*(b[good] for _, b, good in pairs), mixed[1]])]
    thread = rows.thread
    suspect = (thread[one] != thread[other]) & ~(rows.atomic[one] & rows.atomic[other])
    suspect &= rows.write[one] | rows.write[other]
    one, other = one[suspect], other[suspect]
    bad = ~order.before(one, other)
    if fenced:
        bad &= ~_by_atomics(rows, one, other)
    one, other = one[bad], other[bad]
    both = rows.write[one] & rows.write[other]
    equal = both & (rows.value[one] == rows.value[other]) & (rows.size[one] == rows.size[other])
    equal &= ~(rows.atomic[one] | rows.atomic[other])
    yield from _unique(rows, one, other, equal)


def _mixed(atomic: Array, starts: Array, count: int) -> tuple[Array, Array]:
    """Every pair of an atomic and a plain access of one granule, earlier and later.

    Atomics are not ordered by each other, so no neighbour stands for the rest.
    """
    several = np.add.reduceat(atomic.astype(np.int64), starts)
    sizes = np.diff(np.append(starts, count))
    left, earlier, later = MIXED, [_NONE], [_NONE]
    for group in np.flatnonzero((several > 0) & (several < sizes)).tolist():
        left -= int(several[group] * (sizes[group] - several[group]))
        if left < 0:
            break
        mine = np.arange(starts[group], starts[group] + sizes[group])
        some, others = mine[atomic[mine]], mine[~atomic[mine]]
        pairs = np.repeat(some, len(others)), np.tile(others, len(some))
        earlier.append(np.minimum(*pairs))
        later.append(np.maximum(*pairs))
    return np.concatenate(earlier), np.concatenate(later)


def _by_atomics(rows: Rows, one: Array, other: Array) -> Array:
    """Whether the first thread came to an atomic after its access, and then the second one
    to an atomic before its own: so locks work."""
    span = int(rows.event.max(initial=0)) + 1
    at = np.flatnonzero(rows.atomic)
    if not len(at):
        return np.zeros(len(one), bool)
    keys = np.unique(rows.thread[at] * span + rows.event[at])
    after = np.searchsorted(keys, rows.thread[one] * span + rows.event[one], side="right")
    before = np.searchsorted(keys, rows.thread[other] * span + rows.event[other]) - 1
    released, acquired = keys[np.minimum(after, len(keys) - 1)], keys[np.maximum(before, 0)]
    both = (after < len(keys)) & (before >= 0)
    both &= (released // span == rows.thread[one]) & (acquired // span == rows.thread[other])
    return np.asarray(both & (released % span < acquired % span), bool)


def expanded(rows: Rows, chosen: Array, granule: int) -> tuple[Array, Array]:
    """Places of rows, once for each granule, and which granule."""
    count = np.maximum(rows.size[chosen] // granule, 1)
    places = np.repeat(chosen, count)
    step = np.arange(len(places)) - np.repeat(np.cumsum(count) - count, count)
    key = (rows.address[places] // np.uint64(granule)).astype(np.int64) + step
    return places, key


def _unique(rows: Rows, one: Array, other: Array, equal: Array) -> Iterator[Race]:
    """One race for each pair of instructions, its first."""
    size = int(rows.instruction.max(initial=0)) + 1
    low = np.minimum(rows.instruction[one], rows.instruction[other])
    high = np.maximum(rows.instruction[one], rows.instruction[other])
    within_warp = rows.warp[one] == rows.warp[other]
    key = ((low * size + high) * 2 + equal) * 2 + within_warp
    _, first, counts = np.unique(key, return_index=True, return_counts=True)
    for place, number in sorted(zip(first.tolist(), counts.tolist(), strict=True)):
        yield Race(int(one[place]), int(other[place]), bool(equal[place]), number)


@dataclass
class Shadow:
    """Who touched each granule of global memory in earlier blocks."""

    base: int
    bytes: int
    granule: int
    fenced: bool
    meetings: Any = field(default_factory=lambda: np.zeros(0, np.int64))

    def __post_init__(self) -> None:
        size = -(-self.bytes // self.granule)
        # Pages that no kernel touches are never made.
        self.writer, self.reader = np.zeros(size, np.int32), np.zeros(size, np.int32)
        self.wrote, self.readby = np.zeros(size, np.int32), np.zeros(size, np.int32)
        self.write_thread, self.read_thread = np.zeros(size, np.int16), np.zeros(size, np.int16)
        self.write_atomic, self.read_atomic = np.zeros(size, bool), np.zeros(size, bool)
        self.value = np.zeros(size, np.uint64)

    def between(self, rows: Rows, block: int) -> Iterator[Race]:
        """The races of a block with earlier ones; then its own accesses are remembered."""
        chosen = np.flatnonzero(rows.space == GLOBAL)
        places, key = expanded(rows, chosen, self.granule)
        key = key - self.base // self.granule
        inside = (key >= 0) & (key < len(self.writer))
        places, key = places[inside], key[inside]
        atomic, write, read = rows.atomic[places], rows.write[places], rows.read[places]
        if not self._met(key[atomic]):
            clash = self.writer[key] > 0
            clash &= ~(atomic & self.write_atomic[key])
            yield from self._told(rows, places[clash], key[clash], wrote=True)
            clash = write & (self.reader[key] > 0) & ~(atomic & self.read_atomic[key])
            yield from self._told(rows, places[clash], key[clash], wrote=False)
        self._remember(rows, places[write], key[write], block, wrote=True)
        self._remember(rows, places[read], key[read], block, wrote=False)

    def _met(self, key: Array) -> bool:
        """Whether earlier blocks came to one of these atomics, and fences may order them."""
        known = bool(np.isin(key, self.meetings).any())
        self.meetings = np.union1d(self.meetings, key)
        return known and self.fenced

    def _told(self, rows: Rows, places: Array, key: Array, *, wrote: bool) -> Iterator[Race]:
        if not len(places):
            return
        instruction = (self.wrote if wrote else self.readby)[key]
        thread = (self.write_thread if wrote else self.read_thread)[key]
        block = (self.writer if wrote else self.reader)[key] - 1
        equal = np.zeros(len(places), bool)
        if wrote:
            equal = rows.write[places] & (self.value[key] == rows.value[places])
            equal &= ~rows.atomic[places]
        size = int(rows.instruction.max(initial=0)) + int(instruction.max(initial=0)) + 1
        pair = (rows.instruction[places] * size + instruction) * 2 + equal
        _, first, counts = np.unique(pair, return_index=True, return_counts=True)
        for place, number in sorted(zip(first.tolist(), counts.tolist(), strict=True)):
            yield Race(
                -1,
                int(places[place]),
                bool(equal[place]),
                number,
                int(block[place]),
                int(instruction[place]),
                int(thread[place]),
                wrote,
            )

    def _remember(self, rows: Rows, places: Array, key: Array, block: int, *, wrote: bool) -> None:
        who, what, thread, atomic = (
            (self.writer, self.wrote, self.write_thread, self.write_atomic)
            if wrote
            else (self.reader, self.readby, self.read_thread, self.read_atomic)
        )
        # A plain access is kept rather than an atomic one: it races with more.
        plain = ~rows.atomic[places]
        for chosen in (~plain, plain):
            some, at = places[chosen], key[chosen]
            kept = (who[at] == 0) | atomic[at] | ~rows.atomic[some]
            some, at = some[kept], at[kept]
            atomic[at] = rows.atomic[some]
            who[at] = block + 1
            what[at] = rows.instruction[some]
            thread[at] = rows.thread[some]
            if wrote:
                self.value[at] = rows.value[some]
