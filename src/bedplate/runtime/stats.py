"""The figures of a pool, under PyTorch's names where PyTorch has one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One number over its life."""

    current: int
    peak: int
    allocated: int
    freed: int


@dataclass(frozen=True, slots=True)
class Side:
    """The figures of requests up to 1 MiB, or of larger ones. Counts, and bytes.

    A segment is a plain segment or a mapped piece; of `segment` only `current` is
    kept. The peaks of small `allocation` and `allocated_bytes` take a block in a
    quick bin for a live one; `requested_bytes` and `PoolStats.allocated_peak_bytes`
    do not.
    """

    allocation: Figure
    segment: Figure
    reserved_bytes: Figure
    allocated_bytes: Figure
    requested_bytes: Figure
    active_bytes: Figure


@dataclass(frozen=True, slots=True)
class DriverCalls:
    """Calls of the driver by what they do: memory made and given back, put behind
    addresses and taken away, and waits on the host."""

    create: int
    release: int
    map: int
    unmap: int
    wait: int


@dataclass(frozen=True, slots=True)
class PoolStats:
    """All figures of a pool at a moment; bytes and counts.

    `retries` are searches that began again, quick bins having been emptied or
    streams waited for. `open` and `sealed` are calls asked for before `seal` and
    after it, refused ones too; `driver_calls` are those made.
    """

    pool: str
    small: Side
    large: Side
    largest_free_block_bytes: int
    pending_free_bytes: int
    inactive_split_bytes: int
    driver_calls: int
    sealed_calls: int
    waits: int
    out_of_memory: int
    remapped_bytes: int
    allocated_peak_bytes: int
    reserved_peak_bytes: int
    quota_bytes: int
    retries: int
    open: DriverCalls
    sealed: DriverCalls

    @property
    def allocated_bytes(self) -> int:
        """Bytes in live blocks, as cut."""
        return self.small.allocated_bytes.current + self.large.allocated_bytes.current

    @property
    def reserved_bytes(self) -> int:
        """Bytes held from the device."""
        return self.small.reserved_bytes.current + self.large.reserved_bytes.current

    @property
    def fragmentation(self) -> float:
        """The part of the free bytes that the largest free block is not; 0 without any."""
        free = self.inactive_split_bytes
        return 1 - self.largest_free_block_bytes / free if free else 0.0


def read(pool: str, native: Any) -> PoolStats:
    """From the native struct."""

    def figure(value: Any) -> Figure:
        return Figure(value.current, value.peak, value.allocated, value.freed)

    def side(value: Any) -> Side:
        return Side(*(figure(getattr(value, name)) for name in Side.__dataclass_fields__))

    def calls(value: Any) -> DriverCalls:
        return DriverCalls(*(getattr(value, name) for name in DriverCalls.__dataclass_fields__))

    words = {
        name: int(getattr(native, name))
        for name in PoolStats.__dataclass_fields__
        if name not in ("pool", "small", "large", "open", "sealed")
    }
    return PoolStats(
        pool=pool,
        small=side(native.small),
        large=side(native.large),
        open=calls(native.open),
        sealed=calls(native.sealed),
        **words,
    )
