"""The device timer: how long work takes on a device, by the device's own clock.

    timer = DeviceTimer(queue)
    samples = timer.measure(lambda batch: batch.fill(buffer, 0), rounds=20)

This is the only one of the repository. Work is recorded between two timestamps
of one batch and held back by a fence until all of it is submitted, so that no
submission is inside; a device that needs no host then runs it back to back. A
kernel that spins instead would need code for each kind of device and stops a
core where the device is the processor; a fence works everywhere. Before each
round the caches can be flushed by filling memory that is larger than they are.

`clock_pair` relates the device's clock to the host's, with its uncertainty.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bedplate.hal.batch import Batch
from bedplate.hal.buffer import Range
from bedplate.hal.errors import InvalidArgument, Unsupported
from bedplate.hal.queue import Queue

WAIT_NS = 60_000_000_000
STAMP_BYTES = 8


@dataclass(frozen=True, slots=True)
class ClockPair:
    """`device_ns` was read between `host_ns` - and + `uncertainty_ns` of CLOCK_MONOTONIC."""

    device_ns: int
    host_ns: int
    uncertainty_ns: int


class DeviceTimer:
    """Measures batches on one queue.

    `flush_bytes` of memory are filled before each round, 0 leaves the caches
    warm; twice the last-level cache is enough. Raises Unsupported on a device
    whose timestamps may not be relied on.
    """

    def __init__(self, queue: Queue, *, flush_bytes: int = 0) -> None:
        device = queue.device
        if "timestamp" not in device.info.capabilities:
            raise Unsupported(
                f"{device.id} has no certified timestamps",
                remedy=f"run `bedplate hal conform {device.info.backend}`",
            )
        if flush_bytes < 0:
            raise InvalidArgument(f"a flush of {flush_bytes} bytes")
        self.queue = queue
        self._flush = device.allocate(flush_bytes // 4 * 4) if flush_bytes >= 4 else None
        self._gate, self._opened = device.timeline(), 0

    def measure(
        self, record: Callable[[Batch], object], *, rounds: int = 20, warm_up: int = 2
    ) -> list[float]:
        """Nanoseconds of what `record` puts into a batch, once for each round.

        `record` is called once; its commands run in every round, after
        `warm_up` rounds that are forgotten. The two timestamps cost what
        `empty_ns` says. Raises InvalidArgument without rounds, and what the
        work itself raises.
        """
        if rounds < 1 or warm_up < 0:
            raise InvalidArgument(f"{rounds} rounds after {warm_up}", remedy="ask for 1 at least")
        marks = self.queue.device.allocate(2 * STAMP_BYTES)
        before, batch = Batch(), Batch()
        if self._flush is not None:
            before.fill(self._flush, 0x5A5A5A5A)
        batch.timestamp(Range(marks, 0, STAMP_BYTES))
        record(batch)
        batch.timestamp(Range(marks, STAMP_BYTES, STAMP_BYTES))
        samples = []
        for number in range(warm_up + rounds):
            self._held(before, batch)
            begin, end = self._read(Range(marks, 0, 2 * STAMP_BYTES))
            if number >= warm_up:
                samples.append(float(end - begin))
        return samples

    def empty_ns(self, rounds: int = 20) -> float:
        """The median of measuring nothing: what every measurement has too much."""
        return float(np.median(self.measure(lambda batch: None, rounds=rounds)))

    def resolution_ns(self, count: int = 200) -> int:
        """The smallest step between neighbouring timestamps of one batch that is not 0."""
        marks = self.queue.device.allocate(STAMP_BYTES * count)
        batch = Batch()
        for i in range(count):
            batch.timestamp(Range(marks, STAMP_BYTES * i, STAMP_BYTES))
        self._held(Batch(), batch)
        steps = np.diff(self._read(Range(marks, 0, STAMP_BYTES * count)))
        moved = steps[steps > 0]
        return int(moved.min()) if moved.size else 0

    def clock_pair(self, tries: int = 16) -> ClockPair:
        """The device's and the host's clock at one moment; of `tries` the narrowest."""
        marks = self.queue.device.allocate(STAMP_BYTES)
        batch, best = Batch(), None
        batch.timestamp(marks)
        for _ in range(max(tries, 1)):
            start = time.monotonic_ns()
            self.queue.submit(batch)
            self.queue.synchronize(WAIT_NS)
            end = time.monotonic_ns()
            if best is None or (end - start) // 2 < best.uncertainty_ns:
                device_ns = self._read(Range(marks, 0, STAMP_BYTES))[0]
                best = ClockPair(device_ns, (start + end) // 2, (end - start + 1) // 2)
        assert best is not None
        return best

    def _held(self, before: Batch, batch: Batch) -> None:
        """Run two batches that are both submitted before the first may begin."""
        self._opened += 1
        self.queue.submit(before, wait=[(self._gate, self._opened)])
        self.queue.submit(batch)
        self._gate.signal(self._opened)
        self.queue.synchronize(WAIT_NS)

    def _read(self, span: Range) -> list[int]:
        raw = self.queue.device.read_bytes(span)
        return [int(stamp) for stamp in np.frombuffer(raw, "<u8")]
