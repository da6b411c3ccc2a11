"""A stream of a scheduler: batches in a row, described natively and kept alive."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bedplate.hal.api import Batch, Buffer, Fence, Range, Tensor, Timeline
from bedplate.runtime.allocator import Block
from bedplate.runtime.checker import Record, Span, caller
from bedplate.runtime.errors import OptionsInvalid
from bedplate.runtime.graph import Graph
from bedplate.runtime.native import ffi, library
from bedplate.runtime.streams import NEVER, check_stream

if TYPE_CHECKING:
    from bedplate.runtime.scheduler import Scheduler, SchedulerQueue

Place = Tensor | Buffer | Range | Block
"""What a batch reads or writes, said for the checker."""


def deadline(timeout_ns: int | None) -> int:
    """The absolute time of a timeout; None is never."""
    if timeout_ns is None:
        return NEVER
    if not 0 <= timeout_ns < 1 << 62:
        raise OptionsInvalid(f"a timeout of {timeout_ns} ns", remedy="give 0 or more")
    return time.monotonic_ns() + timeout_ns


class WorkStream:
    """A row of batches that run in order; see `Scheduler.stream`.

    `timeline` is moved by one with each batch. After a failure all later
    batches fail too, until `reset`.
    """

    def __init__(self, work: Scheduler, queue: SchedulerQueue, priority: int) -> None:
        self._work = work
        self.queue = queue
        self.timeline = Timeline(work.device)
        out = ffi.new("uint32_t *")
        check_stream(
            library().bp_runtime_scheduler_stream(
                work.native, queue.number, priority, self.timeline.handle, 0, out
            )
        )
        self.number = int(out[0])
        self._submitted = 0
        # Their buffers and kernels must live until the device has the batch.
        self._kept: deque[tuple[int, object]] = deque()
        self._count = 0

    def submit(
        self,
        batch: Batch | None = None,
        *,
        tag: int = 0,
        wait: Sequence[Fence] = (),
        signal: Sequence[Fence] = (),
        wait_ns: int | None = None,
        room_ns: int | None = None,
        reads: Sequence[Place] = (),
        writes: Sequence[Place] = (),
    ) -> Fence:
        """Append a batch, or none for its fences alone; the fence that it will pass.

        It fails when its waits do not pass within `wait_ns`. `reads` and
        `writes` tell the scheduler's checker what its commands use; without
        either it takes `Batch.uses`, in which kernels write all they get. Raises
        StreamDeadline when the ring stayed full for `room_ns`, SchedulerStopped,
        and OptionsInvalid for what cannot be kept.
        """
        described, keep = describe(batch, tag, wait, signal)
        out = ffi.new("uint64_t *")
        status = library().bp_runtime_scheduler_submit(
            self._work.native, self.number, described, deadline(wait_ns), deadline(room_ns), out
        )
        check_stream(status)
        del keep
        fence = self._accepted(int(out[0]), batch)
        if self._work.checker is not None:
            if batch is not None and not reads and not writes:
                reads, writes = batch.uses()
            self._note(fence, f"batch {tag}", wait, signal, reads, writes)
        return fence

    def launch(
        self,
        graph: Graph,
        *,
        tag: int = 0,
        wait: Sequence[Fence] = (),
        signal: Sequence[Fence] = (),
        wait_ns: int | None = None,
        room_ns: int | None = None,
        reads: Sequence[Place] = (),
        writes: Sequence[Place] = (),
    ) -> Fence:
        """Append a batch that runs a graph; as `submit`."""
        described, keep = describe(None, tag, wait, signal)
        out = ffi.new("uint64_t *")
        status = library().bp_runtime_graph_launch(
            self._work.native,
            self.number,
            graph.native,
            described,
            deadline(wait_ns),
            deadline(room_ns),
            out,
        )
        check_stream(status)
        del keep
        fence = self._accepted(int(out[0]), graph)
        if self._work.checker is not None:
            self._note(fence, f"graph {tag}", wait, signal, reads, writes)
        return fence

    def _accepted(self, value: int, keep: object) -> Fence:
        recording = self._work.recording
        if recording is not None and self in recording.streams:
            recording.batches.append(keep)
            return self.timeline, value
        self._submitted = value
        self._count += 1
        self._kept.append((self._count, keep))
        if len(self._kept) > 64:
            self._let_go()
        return self.timeline, value

    def _note(
        self,
        fence: Fence,
        op: str,
        wait: Sequence[Fence],
        signal: Sequence[Fence],
        reads: Sequence[Place],
        writes: Sequence[Place],
    ) -> None:
        recording, checker = self._work.recording, self._work.checker
        if checker is None or (recording is not None and self in recording.streams):
            return
        record = Record(
            f"stream {self.number}",
            op,
            [span for span in map(span_of, reads) if span.length],
            [span for span in map(span_of, writes) if span.length],
            [(timeline.handle, value) for timeline, value in wait],
            [(timeline.handle, value) for timeline, value in (*signal, fence)],
            caller(),
        )
        checker.add(record)

    def _let_go(self) -> None:
        out = ffi.new("uint64_t *")
        check_stream(library().bp_runtime_scheduler_handed(self._work.native, self.number, out))
        while self._kept and self._kept[0][0] <= out[0]:
            self._kept.popleft()

    def synchronize(self, timeout_ns: int | None = None) -> None:
        """Wait for everything submitted so far; as `Scheduler.wait`."""
        self._work.wait((self.timeline, self._submitted), timeout_ns)

    def reset(self) -> None:
        """After a failure: later batches run again, and move a new timeline."""
        timeline = Timeline(self._work.device)
        native = self._work.native
        check_stream(library().bp_runtime_scheduler_reset(native, self.number, timeline.handle, 0))
        self._work.retire(self.timeline)
        self.timeline, self._submitted = timeline, 0


def span_of(place: Place) -> Span:
    """The bytes of a place, as the checker names them."""
    if isinstance(place, Block):
        if place.memory == 0:
            return Span("address", place.address, place.bytes)
        return Span(place.memory, place.offset, place.bytes)
    if isinstance(place, Buffer):
        return Span(place.handle, 0, place.bytes)
    span = place.range if isinstance(place, Tensor) else place
    return Span(span.buffer.handle, span.offset, span.length)


def describe(
    batch: Batch | None, tag: int, wait: Sequence[Fence], signal: Sequence[Fence]
) -> tuple[Any, Any]:
    """A native batch, and what it points to."""
    described = ffi.new("bp_batch *")
    described.head.struct_version, described.head.struct_size = 1, ffi.sizeof("bp_batch")
    if not 0 <= tag < 1 << 64:
        raise OptionsInvalid(f"a tag of {tag}", remedy="give a number of 64 bits")
    described.tag = tag
    waits, signals = _fences(wait), _fences(signal)
    described.wait, described.wait_count = waits, len(wait)
    described.signal, described.signal_count = signals, len(signal)
    pointers = None
    if batch is not None and len(batch):
        pointers = batch.pointers()
        described.commands = ffi.cast("void *", pointers)
        described.command_count = len(batch)
    return described, (waits, signals, pointers)


def _fences(fences: Sequence[Fence]) -> Any:
    array = ffi.new("bp_fence[]", max(len(fences), 1))
    for place, (timeline, value) in zip(array, fences, strict=False):
        place.timeline, place.value = timeline.handle, value
    return array
