"""Whether memory of a trace is given out while a stream may still work on it.

    for reuse in sanitize(load_trace("job.csv")):
        print(reuse)

The trace is replayed with streams that never get anywhere unless it says that the
host waited for them, so luck hides nothing: one order of requests is enough. A
block's own stream works on it until its free; other streams as the records `use`
say, and the allocator knows of those only by the records `used_on`. Ours runs as it
is, over a device of numbers; other policies place without knowing streams.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from bedplate.runtime.allocator import Block, Stream
from bedplate.runtime.numbers import NumbersAllocator
from bedplate.runtime.replay import check_streams, replay
from bedplate.runtime.trace import ALLOCATE, FREE, SYNC, USE, USED_ON, Trace

CAPACITY_BYTES = 1 << 50
"""More than any job, so that nothing waits for a stream to get its memory."""
OURS = {"bedplate": "mapping:on,wait:off", "bedplate-noremap": "mapping:off,wait:off"}


@dataclass(frozen=True, slots=True)
class Reuse:
    """Memory of a block was given to another while a stream may still work on it.

    Records are numbers in the trace: the request of the block, that of the one
    which got its memory (or its use after the free), and the last work before.
    """

    block: int
    stream: int
    second: int
    second_stream: int
    work: int
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(slots=True)
class _Live:
    """A block of the trace: its request's record, owner, place and, of ours, the handle."""

    record: int
    stream: int
    start: int
    end: int
    native: Block | None
    freed: int | None = None


@dataclass(slots=True)
class _Touched:
    """The bytes that one stream may be at work on, newest work on top; no two overlap."""

    starts: list[int] = field(default_factory=list)
    pieces: list[tuple[int, _Live, int]] = field(default_factory=list)

    def add(self, start: int, end: int, block: _Live, work: int) -> None:
        first = self._first(start)
        last = bisect.bisect_left(self.starts, end, first)
        new = [(start, (end, block, work))]
        for at, piece in zip(self.starts[first:last], self.pieces[first:last], strict=True):
            if at < start:
                new.insert(0, (at, (start, *piece[1:])))
            if piece[0] > end:
                new.append((end, piece))
        self.starts[first:last] = [at for at, _ in new]
        self.pieces[first:last] = [piece for _, piece in new]

    def over(self, start: int, end: int) -> tuple[_Live, int] | None:
        """The block and the work of the first piece that lies in a range."""
        first = self._first(start)
        if first < len(self.starts) and self.starts[first] < end:
            return self.pieces[first][1:]
        return None

    def _first(self, start: int) -> int:
        place = bisect.bisect_right(self.starts, start)
        return place - 1 if place and self.pieces[place - 1][0] > start else place


class _Ours:
    """The allocator on streams that stand still; each has one more batch for each work."""

    def __init__(self, options: str) -> None:
        self.memory = NumbersAllocator(CAPACITY_BYTES, options=options)
        self.memory.hold()
        self._pool = self.memory.pool("activations")
        self._streams: dict[int, tuple[Stream, int]] = {}
        self._submitted: dict[int, int] = defaultdict(int)

    def _stream(self, number: int) -> tuple[Stream, int]:
        if number not in self._streams:
            self._streams[number] = self.memory.stream(), len(self._streams) + 1
        return self._streams[number]

    def allocate(self, size: int, stream: int) -> Block:
        return self._pool.allocate(size, self._stream(stream)[0])

    def work(self, stream: int) -> None:
        self._submitted[stream] += 1
        self._stream(stream)[0].advance(self._submitted[stream])

    def used_on(self, block: Block, stream: int) -> None:
        block.used_on(self._stream(stream)[0])

    def reach(self, stream: int) -> None:
        self.memory.reach(self._stream(stream)[1], self._submitted[stream])


def sanitize(trace: Trace, policy: str = "bedplate") -> list[Reuse]:
    """Every unsafe reuse, in the trace's order, and every use after a free.

    Raises OptionsInvalid for an unknown policy.
    """
    if policy in OURS:
        check_streams(trace["stream"])
        ours = _Ours(OURS[policy])
        with ours.memory:
            return _Run(trace, ours, None).findings
    return _Run(trace, None, replay(trace, policy).places).findings


class _Run:
    """One replay; `places` are those of a policy that is not ours."""

    def __init__(
        self,
        trace: Trace,
        ours: _Ours | None,
        places: np.ndarray[tuple[int], np.dtype[np.uint64]] | None,
    ) -> None:
        self.findings: list[Reuse] = []
        self._ours, self._places = ours, places
        self._touched: dict[int, _Touched] = defaultdict(_Touched)
        self._blocks: dict[int, _Live] = {}
        rows = zip(
            *(trace[name].tolist() for name in ("action", "address", "bytes", "stream")),
            strict=True,
        )
        for record, (action, name, size, stream) in enumerate(rows):
            if action == ALLOCATE:
                self._allocate(record, name, size, stream)
            elif action == SYNC:
                self._touched[stream] = _Touched()
                if ours:
                    ours.reach(stream)
            elif name in self._blocks:
                self._used(record, action, self._blocks[name], stream)

    def _allocate(self, record: int, name: int, size: int, stream: int) -> None:
        self._blocks.pop(name, None)
        native = self._ours.allocate(size, stream) if self._ours else None
        if native is not None:
            start, size = native.address, native.bytes
        else:
            start = int(self._places[record]) if self._places is not None else 0
        if not size or not start:
            return
        block = _Live(record, stream, start, start + size, native)
        self._blocks[name] = block
        for other, touched in self._touched.items():
            found = None if other == stream else touched.over(start, start + size)
            if found:
                self._find(found[0], other, block, stream, found[1])

    def _used(self, record: int, action: int, block: _Live, stream: int) -> None:
        if action == USED_ON:
            if self._ours and block.native and block.freed is None:
                self._ours.used_on(block.native, stream)
        elif action == USE:
            if block.freed is not None:
                self._late(record, block, stream)
            self._work(record, block, stream)
        elif action == FREE and block.freed is None:
            self._work(record, block, block.stream)
            block.freed = record
            if block.native:
                block.native.free()

    def _work(self, record: int, block: _Live, stream: int) -> None:
        self._touched[stream].add(block.start, block.end, block, record)
        if self._ours:
            self._ours.work(stream)

    def _find(self, first: _Live, stream: int, second: _Live, other: int, work: int) -> None:
        text = (
            f"record {second.record}: stream {other} gets the block of record {first.record} "
            f"({first.end - first.start:,} bytes, stream {first.stream}), on which stream "
            f"{stream} may still be at work (record {work})"
        )
        self.findings.append(Reuse(first.record, stream, second.record, other, work, text))

    def _late(self, record: int, block: _Live, stream: int) -> None:
        text = (
            f"record {record}: stream {stream} uses the block of record {block.record} "
            f"({block.end - block.start:,} bytes, stream {block.stream}) after its free "
            f"(record {block.freed})"
        )
        freed = block.freed or 0
        self.findings.append(Reuse(block.record, block.stream, record, stream, freed, text))
