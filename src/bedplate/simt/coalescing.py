"""Coalescing: how many 32-byte sectors of memory one request of a warp touches.

The rule as a pure function over addresses; compiled counters and reports are checked
against it. An access is aligned to its size and at most 16 bytes, so it lies in one sector.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SECTOR_BYTES = 32
"""The unit that caches move, on every architecture since sm_50."""


def sectors(addresses: Iterable[int]) -> int:
    """The sectors of one request, given the address of each active lane."""
    return len({address // SECTOR_BYTES for address in addresses})


def by_alignment(values: Sequence[int]) -> tuple[int, ...]:
    """The sectors of `base + values[lane]` for all lanes, for each `base % 32`."""
    return tuple(sectors(base + value for value in values) for base in range(SECTOR_BYTES))
