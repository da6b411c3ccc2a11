"""Who surely ran before whom: vector clocks of warps and of the lanes in each warp.

The log is played again: threads wait, a barrier that has all of them lets them go, and
what they did before it is before what each does after it. Clocks between warps are kept
for a whole warp, because barriers of blocks are made for whole warps; a part of a warp
at a barrier is told as an error of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bedplate.simt.block import BARRIERS
from bedplate.simt.checks.log import Kind
from bedplate.simt.checks.rows import Array, Rows
from bedplate.simt.scalar import FULL, LANES


@dataclass(frozen=True)
class Waiting:
    """Threads at a barrier: a warp, its lanes, the instruction, and the event."""

    warp: int
    mask: int
    number: int
    count: int
    instruction: int
    event: int


@dataclass(frozen=True)
class Released:
    """A barrier that was completed: who was at it, and who had ended before."""

    waiting: Sequence[Waiting]
    ended: Sequence[int]


@dataclass(frozen=True)
class Parted:
    """A part of a warp came to a barrier; `live` are the lanes that could have."""

    waiting: Waiting
    live: int


@dataclass(frozen=True)
class Sync:
    """Lanes of a warp that wait for each other, and whom each names."""

    warp: int
    mask: int
    named: Sequence[int]
    instruction: int
    live: int


@dataclass
class Clocks:
    """The order of a block, and what was seen on the way."""

    threads: int
    ordering: frozenset[int]
    """The instructions among syncs that also order memory."""
    converged: bool = True
    """Whether lanes that part meet again before a barrier; not so when they take turns."""
    released: list[Released] = field(default_factory=list)
    parted: list[Parted] = field(default_factory=list)
    syncs: list[Sync] = field(default_factory=list)
    stuck: list[Waiting] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    """Lanes of each warp that are gone."""

    def __post_init__(self) -> None:
        self.warps = -(-self.threads // LANES)
        self.ended = [0] * self.warps
        self._began = [self._full(warp) for warp in range(self.warps)]
        self._vectors: list[Array] = []
        self._own: list[int] = []
        self._lane_clocks = [np.zeros((LANES, LANES), np.int64) for _ in range(self.warps)]
        self._snapshots: list[Array] = []
        self._current = np.zeros((self.warps, LANES), np.int64)
        self._marks: list[list[tuple[int, Array, int]]] = [[] for _ in range(self.warps)]
        for warp in range(self.warps):
            np.fill_diagonal(self._lane_clocks[warp], 1)
            vector = np.zeros(self.warps, np.int64)
            vector[warp] = 1
            self._current[warp] = self._segment(warp, vector)
            self._mark(warp, -1)

    def _full(self, warp: int) -> int:
        left = self.threads - LANES * warp
        return FULL if left >= LANES else (1 << left) - 1

    def live(self, warp: int) -> int:
        """The lanes of a warp that have not ended."""
        return self._began[warp] & ~self.ended[warp]

    def _segment(self, warp: int, vector: Array) -> int:
        self._vectors.append(vector)
        self._own.append(int(vector[warp]))
        return len(self._own) - 1

    def _mark(self, warp: int, event: int) -> None:
        """From here on, the warp's accesses have its segments and clocks of now."""
        self._snapshots.append(self._lane_clocks[warp].copy())
        self._marks[warp].append((event, self._current[warp].copy(), len(self._snapshots) - 1))

    # Playing the log.

    def play(self, events: Any) -> None:
        """Go through all events that are no accesses."""
        chosen = np.flatnonzero(events["kind"] != Kind.ACCESS)
        waits: dict[int, list[Waiting]] = {}
        for event in chosen.tolist():
            item = events[event]
            warp, mask = int(item["warp"]), int(item["mask"])
            if any(one.mask & mask for one in waits.get(warp, ())):
                self._release(waits)
            if item["kind"] == Kind.END:
                self.ended[warp] |= mask
            elif item["kind"] == Kind.SYNC:
                self._synced(warp, mask, item, event)
            else:
                self._waits(waits, warp, mask, item, event)
        self._release(waits)
        self.stuck = [one for several in waits.values() for one in several]

    def _synced(self, warp: int, mask: int, item: Any, event: int) -> None:
        named = [int(value) & FULL for value in item["values"]]
        self.syncs.append(Sync(warp, mask, named, int(item["instruction"]), self.live(warp)))
        if int(item["instruction"]) in self.ordering:
            self._merge_lanes(warp, mask)
            self._mark(warp, event)

    def _waits(
        self, waits: dict[int, list[Waiting]], warp: int, mask: int, item: Any, event: int
    ) -> None:
        number, count = int(item["number"]), int(item["count"])
        waiting = Waiting(warp, mask, number, count, int(item["instruction"]), event)
        live = self.live(warp)
        if self.converged and mask != live:
            self.parted.append(Parted(waiting, live))
        waits.setdefault(warp, []).append(waiting)
        # The clock that these lanes go on with is filled in when they are let go.
        row = self._current[warp]
        fresh = self._segment(warp, self._vectors[row[_lowest(mask)]].copy())
        row[_lanes(mask)] = fresh
        self._merge_lanes(warp, mask)
        self._mark(warp, event)

    def _merge_lanes(self, warp: int, mask: int) -> None:
        clocks, which = self._lane_clocks[warp], _lanes(mask)
        clocks[which] = clocks[which].max(axis=0)
        clocks[which, which] += 1

    def _release(self, waits: dict[int, list[Waiting]]) -> None:
        """Let every complete barrier go, as the scheduler does after a round."""
        for number in range(BARRIERS):
            here = [
                one
                for several in waits.values()
                for one in several
                # A warp with several parts stands at the barrier that it came to last.
                if several[-1].number == number
            ]
            if not here:
                continue
            counts = [one.count for one in here if one.count]
            arrived = sum(LANES if one.count else one.mask.bit_count() for one in here)
            wanted = (
                counts[-1]
                if counts
                else sum(self.live(warp).bit_count() for warp in range(self.warps))
            )
            if arrived >= wanted:
                self._let_go(here)
                for warp in {one.warp for one in here}:
                    del waits[warp]

    def _let_go(self, here: Sequence[Waiting]) -> None:
        self.released.append(Released(list(here), list(self.ended)))
        segments = [int(self._current[one.warp, _lowest(one.mask)]) for one in here]
        merged = np.max([self._vectors[segment] for segment in segments], axis=0)
        for one, segment in zip(here, segments, strict=True):
            self._vectors[segment][:] = merged
            self._vectors[segment][one.warp] = self._own[segment] = merged[one.warp] + 1

    # Asking.

    def finish(self, rows: Rows) -> Order:
        """The order of the rows of this block."""
        segment = np.zeros(len(rows), np.int64)
        snapshot = np.zeros(len(rows), np.int64)
        for warp in range(self.warps):
            mine = np.flatnonzero(rows.warp == warp)
            marks = self._marks[warp]
            places = np.searchsorted([mark[0] for mark in marks], rows.event[mine]) - 1
            table = np.array([mark[1] for mark in marks])
            segment[mine] = table[places, rows.lane[mine]]
            snapshot[mine] = np.array([mark[2] for mark in marks])[places]
        return Order(
            rows,
            segment,
            snapshot,
            np.array(self._vectors),
            np.array(self._own),
            np.array(self._snapshots),
        )


@dataclass(frozen=True)
class Order:
    """Rows with their clocks."""

    rows: Rows
    segment: Array
    snapshot: Array
    vectors: Array
    own: Array
    snapshots: Array

    def before(self, one: Array, other: Array) -> Array:
        """Whether rows `one` surely ran before rows `other`, which are later in the log."""
        warp, lane = self.rows.warp, self.rows.lane
        between = self.vectors[self.segment[other], warp[one]] >= self.own[self.segment[one]]
        clock = self.snapshots[self.snapshot[one], lane[one], lane[one]]
        within = self.snapshots[self.snapshot[other], lane[other], lane[one]] >= clock
        return np.where(warp[one] == warp[other], within, between)


def _lanes(mask: int) -> Array:
    return np.flatnonzero([mask >> lane & 1 for lane in range(LANES)])


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1
