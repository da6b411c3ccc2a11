"""Which accesses of a program of streams nothing orders: a happens-before checker.

    checker = Checker()
    checker.add(Record("main", "fill", writes=[Span(1, 0, 64)], signals=[("t", 1)]))
    checker.add(Record("side", "copy", reads=[Span(1, 0, 64)]))
    print(checker.findings())   # no wait for t: both sites are named

Work of a stream runs in the order of its records. A wait for a value of a
timeline comes after the signal that brings the timeline there: the least one
that is enough, because a timeline only grows. Nothing else orders streams. Two
accesses of the same bytes by different streams, one of them a write, of which
neither comes before the other, are a hazard, however seldom they meet.

Clocks are vectors, one count a stream. Memory is kept as cells between the
ends of all spans, each with the last read and the last write of every stream:
what is before the last access of a stream is before none of its earlier ones
less. So a pair of streams is reported once a cell, with its last accesses.
"""

from __future__ import annotations

import bisect
import sys
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from bedplate.runtime.errors import HazardFound, OptionsInvalid

Kind = Literal["hazard", "use_after_free", "never", "signals"]


def caller() -> str:
    """`file:line` of the nearest caller outside the runtime."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (
        frame.f_globals.get("__name__", "").startswith("bedplate.runtime")
        or frame.f_code.co_filename == "<string>"
    ):
        frame = frame.f_back
    return f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes `[offset, offset + length)` of a memory; any hashable names the memory."""

    memory: Hashable
    offset: int
    length: int

    def __str__(self) -> str:
        return f"{self.memory}[{self.offset}:{self.offset + self.length}]"


Point = tuple[Hashable, int]
"""A timeline, by any name, and a value."""


@dataclass(frozen=True, slots=True)
class Record:
    """One piece of work: after `waits`, it reads and writes, then signals.

    `op` is for the report, but for `allocate` and `free` of the spans in
    `writes`: from a free on they may not be used until they are allocated
    again. What an allocator waited for before it gave memory out stands in the
    waits of `allocate`, the fences that a free carries in those of `free`.
    `site` is where it was submitted; the caller's line by default.
    """

    stream: Hashable
    op: str
    reads: Sequence[Span] = ()
    writes: Sequence[Span] = ()
    waits: Sequence[Point] = ()
    signals: Sequence[Point] = ()
    site: str = field(default_factory=caller)

    def __str__(self) -> str:
        return f"{self.op} on {self.stream} at {self.site}"


@dataclass(frozen=True, slots=True)
class Hazard:
    """A finding; `first` and `second` are in no order, unless it is a use after a free.

    Kinds: `hazard`, `use_after_free`, `never` (a wait that no signal ends, or
    waits in a circle), `signals` (two signals of a timeline that nothing
    orders, or that do not grow it).
    """

    kind: Kind
    first: Record
    second: Record | None
    text: str

    def __str__(self) -> str:
        return self.text


class Checker:
    """Collects records in the order of their submits, and checks them together."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.records: list[Record] = []
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """The next record. Raises OptionsInvalid for a span of no or negative bytes."""
        for span in (*record.reads, *record.writes):
            if span.length <= 0 or span.offset < 0:
                raise OptionsInvalid(f"{record} uses {span}", remedy="give at least one byte")
        self.records.append(record)

    def findings(self) -> list[Hazard]:
        """Everything wrong with the records so far; O(records x streams) and the cells."""
        return _Run(self.records).findings

    def require_clean(self) -> None:
        """Raise HazardFound with all findings, unless there is none."""
        found = self.findings()
        if found:
            raise HazardFound("\n".join(map(str, found)))


@dataclass(slots=True)
class _Access:
    record: Record
    index: int
    epoch: int


@dataclass(slots=True)
class _Cell:
    reads: dict[Hashable, _Access] = field(default_factory=dict)
    writes: dict[Hashable, _Access] = field(default_factory=dict)
    freed: _Access | None = None

    def copy(self) -> _Cell:
        return _Cell(dict(self.reads), dict(self.writes), self.freed)


class _Memory:
    """Cells between the ends of spans, in order; a span is cut out when it is first used."""

    def __init__(self) -> None:
        self.starts: list[int] = [0]
        self.cells: list[_Cell] = [_Cell()]

    def over(self, span: Span) -> list[_Cell]:
        first, last = self._cut(span.offset), self._cut(span.offset + span.length)
        return self.cells[first:last]

    def _cut(self, offset: int) -> int:
        place = bisect.bisect_left(self.starts, offset)
        if place == len(self.starts) or self.starts[place] != offset:
            self.starts.insert(place, offset)
            self.cells.insert(place, self.cells[place - 1].copy())
        return place


class _Run:
    """One check: puts the records in an order that their edges allow, clocks going along."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records
        self.findings: list[Hazard] = []
        self._seen: set[tuple[Kind, int, int]] = set()
        self._memory: dict[Hashable, _Memory] = {}
        self._clocks: list[dict[Hashable, int]] = [{} for _ in records]
        self._signals = self._collect(self._runnable())
        order = self._order(self._edges())
        self._compare_signals()
        for index in order:
            self._enter(index)

    def _runnable(self) -> set[int]:
        """Records that some order reaches, a signal of any sufficient value ending a wait."""
        rows: dict[Hashable, deque[int]] = {}
        for index, record in enumerate(self.records):
            rows.setdefault(record.stream, deque()).append(index)
        reached: dict[Hashable, int] = {}
        done: set[int] = set()
        moved = True
        while moved:
            moved = False
            for row in rows.values():
                while row and all(reached.get(t, 0) >= v for t, v in self.records[row[0]].waits):
                    index = row.popleft()
                    done.add(index)
                    moved = True
                    for timeline, value in self.records[index].signals:
                        reached[timeline] = max(reached.get(timeline, 0), value)
        for row in rows.values():
            if row:
                record = self.records[row[0]]
                missing = [(t, v) for t, v in record.waits if reached.get(t, 0) < v]
                words = ", ".join(f"{t} to reach {v}" for t, v in missing)
                self._find("never", row[0], row[0], f"{record} waits for {words}: nobody does that")
        return done

    def _collect(self, runnable: set[int]) -> dict[Hashable, list[tuple[int, int]]]:
        """Of each timeline the signals that happen, as (value, record), growing."""
        found: dict[Hashable, list[tuple[int, int]]] = {}
        self._live = runnable
        for index in sorted(runnable):
            for timeline, value in self.records[index].signals:
                found.setdefault(timeline, []).append((value, index))
        for timeline, signals in found.items():
            signals.sort()
            for (value, first), (other, second) in pairwise(signals):
                if value == other:
                    self._find(
                        "signals",
                        first,
                        second,
                        f"{self.records[first]} and {self.records[second]} both move {timeline} "
                        f"to {value}",
                    )
            if signals and signals[0][0] <= 0:
                index = signals[0][1]
                self._find(
                    "signals",
                    index,
                    index,
                    f"{self.records[index]} moves {timeline} to {signals[0][0]}, where it starts",
                )
        return found

    def _edges(self) -> list[set[int]]:
        """Who is before whom directly: by the stream, or by the signal that ends a wait."""
        before: list[set[int]] = [set() for _ in self.records]
        last: dict[Hashable, int] = {}
        for index, record in enumerate(self.records):
            if index not in self._live:
                continue
            if record.stream in last:
                before[index].add(last[record.stream])
            last[record.stream] = index
            for timeline, value in record.waits:
                signals = self._signals.get(timeline, [])
                place = bisect.bisect_left(signals, (value, -1))
                if value > 0 and place < len(signals):
                    before[index].add(signals[place][1])
        return before

    def _order(self, before: list[set[int]]) -> list[int]:
        """An order that agrees with the edges, and the clocks; who is in a circle is left out."""
        order = _topological(before, self._live)
        for index in order:
            self._advance(index, before[index])
        left = sorted(self._live - set(order))
        if left:
            record = self.records[left[0]]
            self._find("never", left[0], left[0], f"{record} is in a circle of waits and signals")
        return order

    def _compare_signals(self) -> None:
        """A timeline grows by accident where nothing puts the lower of two signals first."""
        for timeline, signals in self._signals.items():
            for (value, first), (other, second) in pairwise(signals):
                stream = self.records[first].stream
                epoch = self._clocks[first].get(stream, 0)
                if value == other or self._clocks[second].get(stream, 0) >= epoch:
                    continue
                self._find(
                    "signals",
                    first,
                    second,
                    f"nothing puts {self.records[first]}, which moves {timeline} to {value}, "
                    f"before {self.records[second]}, which moves it to {other}",
                )

    def _advance(self, index: int, before: set[int]) -> None:
        """The clock of a record from those of its predecessors."""
        clock, stream = self._clocks[index], self.records[index].stream
        for earlier in before:
            for other, count in self._clocks[earlier].items():
                if count > clock.get(other, 0):
                    clock[other] = count
        clock[stream] = clock.get(stream, 0) + 1

    def _enter(self, index: int) -> None:
        """The accesses of a record whose predecessors have entered theirs."""
        record = self.records[index]
        clock = self._clocks[index]
        access = _Access(record, index, clock[record.stream])
        for span in record.reads:
            for cell in self._cells(span):
                self._use(cell, access, clock, span, writes=False)
        for span in record.writes:
            for cell in self._cells(span):
                self._use(cell, access, clock, span, writes=True)

    def _cells(self, span: Span) -> list[_Cell]:
        return self._memory.setdefault(span.memory, _Memory()).over(span)

    def _use(
        self, cell: _Cell, access: _Access, clock: dict[Hashable, int], span: Span, *, writes: bool
    ) -> None:
        op = access.record.op
        for others, word in ((cell.writes, "writes"), (cell.reads, "reads")):
            if word == "reads" and not writes:
                continue
            for stream, other in others.items():
                if clock.get(stream, 0) < other.epoch:
                    self._race(other, access, span)
        freed = cell.freed
        if freed is not None and clock.get(freed.record.stream, 0) >= freed.epoch:
            if op == "free":
                self._freed(freed, access, span, "frees it again")
            elif op != "allocate":
                self._freed(freed, access, span, "uses it")
        if op == "free":
            cell.freed = access
        elif op == "allocate":
            cell.freed = None
        (cell.writes if writes else cell.reads)[access.record.stream] = access

    def _race(self, first: _Access, second: _Access, span: Span) -> None:
        pair = f"{first.record} and {second.record}"
        if "free" in (first.record.op, second.record.op):
            text = f"{pair}: nothing puts the use of {span} before the free"
            self._find("use_after_free", first.index, second.index, text)
        else:
            text = f"{pair}: nothing orders them, and both use {span}"
            self._find("hazard", first.index, second.index, text)

    def _freed(self, freed: _Access, access: _Access, span: Span, what: str) -> None:
        text = f"{freed.record} gave {span} back, then {access.record} {what}"
        self._find("use_after_free", freed.index, access.index, text)

    def _find(self, kind: Kind, first: int, second: int, text: str) -> None:
        if (kind, first, second) in self._seen:
            return
        self._seen.add((kind, first, second))
        other = self.records[second] if second != first else None
        self.findings.append(Hazard(kind, self.records[first], other, text))


def _topological(before: list[set[int]], live: set[int]) -> list[int]:
    """An order in which each comes after its predecessors; those in a circle are left out."""
    after: dict[int, list[int]] = {index: [] for index in live}
    missing = {index: len(before[index]) for index in live}
    for index in live:
        for earlier in before[index]:
            after[earlier].append(index)
    ready = sorted((index for index in live if not missing[index]), reverse=True)
    order = []
    while ready:
        index = ready.pop()
        order.append(index)
        for later in after[index]:
            missing[later] -= 1
            if not missing[later]:
                ready.append(later)
    return order
