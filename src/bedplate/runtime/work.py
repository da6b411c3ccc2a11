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
from bedplate.runtime.graph import Graph, RecordedFence, Recording
from bedplate.runtime.limits import INT32, UINT64, within
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
        within("priority", priority, *INT32)
        self.work = work
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

        In a recording the fence is for batches of the recording alone: no run passes it.
        It fails when its waits do not pass within `wait_ns`. `reads` and
        `writes` tell the scheduler's checker what its commands use; without
        either it takes `Batch.uses`, in which kernels write all they get. Raises
        StreamDeadline when the ring stayed full for `room_ns`, SchedulerStopped,
        and OptionsInvalid for what cannot be kept.
        """
        described, keep = describe(batch, tag, wait, signal, self._recording)
        out = ffi.new("uint64_t *")
        status = library().bp_runtime_scheduler_submit(
            self.work.native, self.number, described, deadline(wait_ns), deadline(room_ns), out
        )
        check_stream(status)
        del keep
        fence = self._accepted(int(out[0]), batch)
        if self.work.checker is not None:
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
        """Append a batch that runs a graph of this scheduler; as `submit`."""
        if graph.work is not self.work:
            raise OptionsInvalid(
                "the graph is another scheduler's", remedy="record it on streams of this one"
            )
        described, keep = describe(None, tag, wait, signal, self._recording)
        out = ffi.new("uint64_t *")
        status = library().bp_runtime_graph_launch(
            self.work.native,
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
        if self.work.checker is not None:
            self._note(fence, f"graph {tag}", wait, signal, reads, writes)
        return fence

    @property
    def _recording(self) -> Recording | None:
        """What submits go to now, instead of the queue."""
        recording = self.work.recording
        return recording if recording is not None and self in recording.streams else None

    def _accepted(self, value: int, keep: object) -> Fence:
        recording = self._recording
        if recording is not None:
            recording.batches.append(keep)
            return RecordedFence(self.timeline, value, recording)
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
        checker = self.work.checker
        if checker is None or self._recording is not None:
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
        check_stream(library().bp_runtime_scheduler_handed(self.work.native, self.number, out))
        while self._kept and self._kept[0][0] <= out[0]:
            self._kept.popleft()

    def synchronize(self, timeout_ns: int | None = None) -> None:
        """Wait for everything submitted so far; as `Scheduler.wait`."""
        self.work.wait((self.timeline, self._submitted), timeout_ns)

    def reset(self) -> None:
        """After a failure: later batches run again, and move a new timeline."""
        timeline = Timeline(self.work.device)
        native = self.work.native
        check_stream(library().bp_runtime_scheduler_reset(native, self.number, timeline.handle, 0))
        self.work.retire(self.timeline)
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
    batch: Batch | None,
    tag: int,
    wait: Sequence[Fence],
    signal: Sequence[Fence],
    recording: Recording | None = None,
) -> tuple[Any, Any]:
    """A native batch, and what it points to."""
    described = ffi.new("bp_batch *")
    described.head.struct_version, described.head.struct_size = 1, ffi.sizeof("bp_batch")
    described.tag = within("tag", tag, 0, UINT64)
    waits, signals = _fences(wait, recording), _fences(signal, recording)
    described.wait, described.wait_count = waits, len(wait)
    described.signal, described.signal_count = signals, len(signal)
    pointers = None
    if batch is not None and len(batch):
        pointers = batch.pointers()
        described.commands = ffi.cast("void *", pointers)
        described.command_count = len(batch)
    return described, (waits, signals, pointers)


def passing(fence: Fence, recording: Recording | None = None) -> Fence:
    """A fence that something will pass. Raises OptionsInvalid for one of another recording."""
    if isinstance(fence, RecordedFence) and fence.recording is not recording:
        raise OptionsInvalid(
            "a fence of a recorded batch, which no run passes",
            remedy="wait for what launch returns",
        )
    within("a fence's value", fence[1], 0, UINT64)
    return fence


def _fences(fences: Sequence[Fence], recording: Recording | None) -> Any:
    array = ffi.new("bp_fence[]", max(len(fences), 1))
    for place, fence in zip(array, fences, strict=False):
        timeline, place.value = passing(fence, recording)
        place.timeline = timeline.handle
    return array
