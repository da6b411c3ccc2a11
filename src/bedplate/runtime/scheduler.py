"""Streams of batches over the queues of a device: order, priorities, failures, graphs.

    with open_device("cpu") as device, Scheduler(device) as work:
        main, side = work.stream(), work.stream(priority=1)
        copied = side.submit(copy)
        main.submit(compute, wait=[copied])
        main.synchronize()

A submit returns once the batch is in the ring; a thread of the queue hands it
to the device when its waits have passed. What fails poisons what waits for it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Self

from bedplate.hal.api import Device, Fence, Timeline
from bedplate.runtime.checker import Checker
from bedplate.runtime.errors import OptionsInvalid, StreamDeadline
from bedplate.runtime.graph import Graph, Recording
from bedplate.runtime.limits import INT32, UINT32, within
from bedplate.runtime.native import ffi, library
from bedplate.runtime.streams import DEVICE_WAITS, check_stream
from bedplate.runtime.work import WorkStream, deadline, passing

MOST_CAPACITY = 1 << 20
MOST_WINDOW = 64
SLICE_NS = 200_000_000
"""Waits are cut into slices, so that Ctrl-C is heard."""


@dataclass(frozen=True, slots=True)
class QueueStats:
    """Batches of a queue since it was made: `waiting` are in it now, `parked` and `wakes`
    count sleeps of a batch for its waits and their ends, `full_waits` submits that found no
    room, `overtaken_most` how often a ready batch was passed by later ones at most."""

    submitted: int
    handed: int
    failed: int
    parked: int
    wakes: int
    overtaken_most: int
    waiting: int
    full_waits: int


class SchedulerQueue:
    """A queue of the device and its worker; see `Scheduler.queue`."""

    def __init__(self, work: Scheduler, number: int) -> None:
        self.work = work
        self.number = number

    def stats(self) -> QueueStats:
        """Its figures now."""
        out = ffi.new("bp_runtime_queue_stats *")
        check_stream(library().bp_runtime_scheduler_stats(self.work.native, self.number, out))
        return QueueStats(*(int(getattr(out, name)) for name in QueueStats.__slots__))


class Scheduler:
    """Queues and streams of a device, best as a context. The device outlives it.

    `capacity`: batches that a queue holds and has not handed over, a power of
    two. `ageing`: how often a ready batch may be overtaken by later ones of a
    higher priority. `checker` gets a record of every batch, with what its
    submit says it reads and writes. Raises OptionsInvalid.
    """

    def __init__(
        self,
        device: Device,
        *,
        capacity: int = 4096,
        ageing: int = 8,
        checker: Checker | None = None,
    ) -> None:
        self.device = device
        self.checker = checker
        self.recording: Recording | None = None
        self.graphs: list[Graph] = []
        self._retired: list[Timeline] = []
        self._default: SchedulerQueue | None = None
        self._streams: list[WorkStream] = []
        options = ffi.new("bp_runtime_scheduler_options *")
        options.capacity = within("capacity", capacity, 2, MOST_CAPACITY)
        options.ageing = within("ageing", ageing, 1, UINT32)
        options.capture = "capture" in device.info.capabilities
        out = ffi.new("bp_runtime_scheduler **")
        api = ffi.cast("void *", device.native_api)
        check_stream(library().bp_runtime_scheduler_open(api, device.handle, options, out))
        self.native = out[0]

    def queue(
        self, *, priority: int = 0, window: int = 0, device_waits: bool = False
    ) -> SchedulerQueue:
        """A queue of the device with a worker.

        `window` bounds the batches handed over and not done, so that a
        priority counts; 0 is no bound, 64 the most. With `device_waits` the
        device waits for fences: right for a queue of one stream.
        """
        out = ffi.new("uint32_t *")
        flags = DEVICE_WAITS if device_waits else 0
        within("window", window, 0, MOST_WINDOW)
        within("priority", priority, *INT32)
        status = library().bp_runtime_scheduler_queue(self.native, priority, window, flags, out)
        check_stream(status)
        return SchedulerQueue(self, int(out[0]))

    def stream(self, queue: SchedulerQueue | None = None, *, priority: int = 0) -> WorkStream:
        """A stream of `queue`, or of one that such streams share."""
        if queue is None:
            self._default = self._default or self.queue()
            queue = self._default
        if queue.work is not self:
            raise OptionsInvalid(
                f"queue {queue.number} is another scheduler's", remedy="make one with queue()"
            )
        stream = WorkStream(self, queue, priority)
        self._streams.append(stream)
        return stream

    def wait(self, fence: Fence, timeout_ns: int | None = None) -> None:
        """Sleep until a fence has passed.

        Raises StreamDeadline, or BatchFailed with the tag and the sentence of
        what failed.
        """
        until = deadline(timeout_ns)
        timeline, value = passing(fence)
        while True:
            slice_end = min(until, time.monotonic_ns() + SLICE_NS)
            status = library().bp_runtime_scheduler_wait(
                self.native, timeline.handle, value, slice_end
            )
            if status == 0:
                return
            try:
                check_stream(status, of_batch=True)
            except StreamDeadline:
                if slice_end == until:
                    raise

    def signal(self, fence: Fence) -> None:
        """Move a timeline from the host; parked batches hear of it at once."""
        timeline, value = passing(fence)
        status = library().bp_runtime_scheduler_signal(self.native, timeline.handle, value)
        check_stream(status)

    def record(self, *streams: WorkStream) -> Recording:
        """Record what is submitted to these streams inside the context, see `Recording.graph`.

        Their batches may wait for each other and for nothing else, and nothing else for
        them; fences of the whole are given to `WorkStream.launch`. Raises OptionsInvalid,
        also for streams of another scheduler.
        """
        if self.recording is not None:
            raise OptionsInvalid("a recording is going on already", remedy="end its context first")
        for stream in streams:
            if stream.work is not self:
                raise OptionsInvalid(
                    f"stream {stream.number} is another scheduler's",
                    remedy="record streams of this one",
                )
        self.recording = Recording(self, streams)
        return self.recording

    def retire(self, timeline: Timeline) -> None:
        """Keep a timeline that batches in the ring may still name."""
        self._retired.append(timeline)

    def stop(self, timeout_ns: int = 0) -> None:
        """Cancel what was not handed over; what was has `timeout_ns` to finish. Twice is fine."""
        check_stream(library().bp_runtime_scheduler_stop(self.native, deadline(timeout_ns)))

    def close(self) -> None:
        """Stop, and give everything back. Twice is fine."""
        if self.native != ffi.NULL:
            for graph in self.graphs:
                graph.release()
            native, self.native = self.native, ffi.NULL
            check_stream(library().bp_runtime_scheduler_close(native))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
