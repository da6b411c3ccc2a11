"""Why a request of a trace did not fit: what there was at that moment, and what lay where.

    why = explain(load_trace("job.csv"), capacity_bytes=8 << 30)
    print(why.text)

The allocator runs over the trace on a device of that size until the first failure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bedplate.core.units import format_bytes
from bedplate.runtime.allocator import Block, Stream
from bedplate.runtime.errors import OptionsInvalid, OutOfMemory
from bedplate.runtime.numbers import NumbersAllocator
from bedplate.runtime.replay import check_streams
from bedplate.runtime.trace import ALLOCATE, FREE, Trace

OPTIONS = {"bedplate": "mapping:on", "bedplate-noremap": "mapping:off"}
SHOWN = 5
_FREE, _LIVE = 1, 2


@dataclass(frozen=True, slots=True)
class Piece:
    """A block at the moment of the failure; a free one lies between live ones, by the
    records of their requests, or at an end (None)."""

    address: int
    bytes: int
    request: int | None
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The request that failed first, what the allocator said, and the largest blocks."""

    record: int
    bytes: int
    message: str
    remedy: str
    free: tuple[Piece, ...]
    live: tuple[Piece, ...]

    @property
    def text(self) -> str:
        """Some lines for people."""

        def at(request: int | None) -> str:
            return "an end" if request is None else f"the block of record {request}"

        lines = [f"record {self.record}: {self.message}", f"do: {self.remedy}"]
        for piece in self.free:
            lines.append(
                f"free  {format_bytes(piece.bytes):>10} between {at(piece.before)} and "
                f"{at(piece.after)}"
            )
        lines += [
            f"live  {format_bytes(piece.bytes):>10} since record {piece.request}"
            for piece in self.live
        ]
        return "\n".join(lines)


def explain(trace: Trace, *, capacity_bytes: int, policy: str = "bedplate") -> Shortfall | None:
    """The first request that does not fit on a device of `capacity_bytes`, or None.

    Raises OptionsInvalid for a policy that is not ours.
    """
    if policy not in OPTIONS:
        raise OptionsInvalid(
            f"{policy!r} cannot say why", remedy=f"use one of {', '.join(OPTIONS)}"
        )
    check_streams(trace["stream"][trace["action"] == ALLOCATE])
    with NumbersAllocator(capacity_bytes, options=OPTIONS[policy]) as memory:
        pool = memory.pool("activations")
        streams: dict[int, Stream] = {}
        live: dict[int, tuple[int, Block]] = {}
        fields = (trace[name].tolist() for name in ("action", "address", "bytes", "stream"))
        for record, (action, name, size, stream) in enumerate(zip(*fields, strict=True)):
            if action == ALLOCATE and size:
                if stream not in streams:
                    streams[stream] = memory.stream()
                try:
                    live[name] = record, pool.allocate(size, streams[stream])
                except OutOfMemory as error:
                    return _shortfall(memory, live, record, size, error)
            elif action == FREE and name in live:
                live.pop(name)[1].free()
    return None


def _shortfall(
    memory: NumbersAllocator,
    live: dict[int, tuple[int, Block]],
    record: int,
    size: int,
    error: OutOfMemory,
) -> Shortfall:
    requests = {block.address: request for request, block in live.values()}
    blocks = memory.blocks()
    pieces: dict[int, list[Piece]] = {_FREE: [], _LIVE: []}

    def neighbour(number: int, step: int) -> int | None:
        # Holes and blocks of other states lie between, unless a segment ends.
        here: Any = blocks[number]
        while 0 <= number + step < len(blocks):
            if (here if step < 0 else blocks[number + 1]).first:
                return None
            number += step
            here = blocks[number]
            if here.state == _LIVE:
                return requests.get(int(here.address))
        return None

    for number, seen in enumerate(blocks):
        if seen.state in pieces:
            address = int(seen.address)
            ends = (
                (neighbour(number, -1), neighbour(number, 1))
                if seen.state == _FREE
                else (None, None)
            )
            pieces[seen.state].append(Piece(address, int(seen.bytes), requests.get(address), *ends))
    largest = {
        state: tuple(sorted(found, key=lambda piece: -piece.bytes)[:SHOWN])
        for state, found in pieces.items()
    }
    return Shortfall(
        record, size, error.message, error.remedy or "", largest[_FREE], largest[_LIVE]
    )
