"""Accesses that touch what they must not, and reads of what nobody wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bedplate.simt.checks.race import expanded
from bedplate.simt.checks.rows import GLOBAL, LOCAL, SHARED, Array, Rows
from bedplate.simt.memory import Memory


@dataclass(frozen=True)
class Bad:
    """A row and what is wrong with it; `detail` says how far it is from what was meant."""

    row: int
    kind: str
    detail: str
    count: int = 1


def invalid(rows: Rows, memory: Memory, shared_bytes: int) -> Iterator[Bad]:
    """Misaligned rows, and rows outside of every allocation; the first of each instruction."""
    address, size = rows.address, rows.size.astype(np.uint64)
    odd = address % np.maximum(size, 1) != 0
    for row, count in _firsts(rows, odd):
        yield Bad(row, "misaligned", f"Address {int(address[row]):#x} is misaligned", count)
    outside = (rows.space == SHARED) & (address + size > shared_bytes) & ~odd
    for row, count in _firsts(rows, outside):
        detail = (
            f"Address {int(address[row]):#x} is out of bounds of the {shared_bytes} bytes of "
            f"shared memory"
        )
        yield Bad(row, "out-of-bounds", detail, count)
    lost = (rows.space == GLOBAL) & ~odd & ~_allocated(address, size, memory)
    for row, count in _firsts(rows, lost):
        kind, detail = _nearest(int(address[row]), int(size[row]), memory)
        yield Bad(row, kind, detail, count)


def _firsts(rows: Rows, bad: Array) -> list[tuple[int, int]]:
    """The first bad row of each instruction, and how many there are."""
    places = np.flatnonzero(bad)
    _, first, counts = np.unique(rows.instruction[places], return_index=True, return_counts=True)
    return sorted(zip(places[first].tolist(), counts.tolist(), strict=True))


def _allocated(address: Array, size: Array, memory: Memory) -> Array:
    spans = sorted([*memory.live.items(), *((w.base, len(w.memory)) for w in memory.windows)])
    if not spans:
        return np.zeros(len(address), bool)
    starts, sizes = (np.array(column, np.uint64) for column in zip(*spans, strict=True))
    place = np.searchsorted(starts, address, side="right") - 1
    inside = address + size <= starts[place] + sizes[place]
    return np.asarray((place >= 0) & inside, bool)


def _nearest(address: int, size: int, memory: Memory) -> tuple[str, str]:
    for start, length in memory.freed():
        if start <= address < start + length:
            return "use-after-free", f"Address {address:#x} is in memory that was freed"
    what = f"Address {address:#x} is out of bounds"
    if not memory.live:
        return "out-of-bounds", what
    start, length = min(
        memory.live.items(), key=lambda one: max(one[0] - address, address - one[0] - one[1])
    )
    after = address + size > start
    distance = address - start - length if after else start - address
    side = "after" if after else "before"
    place = f"{max(distance, 0)} bytes {side} the nearest allocation at {start:#x}"
    return "out-of-bounds", f"{what} and is {place} of size {length} bytes"


def unwritten(rows: Rows, granules: tuple[int, int, int], local_bytes: int) -> Iterator[Bad]:
    """Reads of shared and local memory before any write, in the order of this run."""
    for space in (SHARED, LOCAL):
        chosen = np.flatnonzero(rows.space == space)
        places, key = expanded(rows, chosen, granules[space])
        if space == LOCAL:
            key = key + rows.thread[places] * -(-local_bytes // granules[space])
        found = places[_unwritten(rows, places, key)]
        yield from _told(rows, found)


def unwritten_global(rows: Rows, memory: Memory, granule: int) -> Iterator[Bad]:
    """The same for allocations that the host never filled; remembers what is written."""
    chosen = np.flatnonzero(rows.space == GLOBAL)
    places, key = expanded(rows, chosen, granule)
    bad = np.zeros(len(places), bool)
    early = _unwritten(rows, places, key)
    for start, written in memory.written.items():
        offset = key * granule - start
        mine = (offset >= 0) & (offset + granule <= len(written))
        bad[mine] |= early[mine] & ~written[offset[mine]]
        stores = offset[mine & rows.write[places]]
        for byte in range(granule):
            written[stores + byte] = True
    yield from _told(rows, places[bad])


def _unwritten(rows: Rows, places: Array, key: Array) -> Array:
    """Which of `places`, in time order, read a key that no earlier one wrote."""
    turn = np.argsort(key, kind="stable")
    sorted_key, write = key[turn], rows.write[places][turn]
    index = np.arange(len(places))
    start = np.ones(len(places), bool)
    start[1:] = sorted_key[1:] != sorted_key[:-1]
    first = np.maximum.accumulate(np.where(start, index, 0))
    before = np.full(len(places), -1)
    before[1:] = np.maximum.accumulate(np.where(write, index, -1))[:-1]
    result = np.zeros(len(places), bool)
    result[turn] = (before < first) & rows.read[places][turn]
    return result


def _told(rows: Rows, found: Array) -> Iterator[Bad]:
    chosen = np.zeros(len(rows), bool)
    chosen[found] = True
    for row, count in _firsts(rows, chosen):
        yield Bad(row, "uninitialized", "", count)
