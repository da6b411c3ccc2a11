"""Recorded work: what a stream's submits become between the ends of a context."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from bedplate.hal.api import Timeline
from bedplate.runtime.errors import OptionsInvalid
from bedplate.runtime.native import ffi, library
from bedplate.runtime.streams import check_stream

if TYPE_CHECKING:
    from bedplate.runtime.scheduler import Scheduler
    from bedplate.runtime.work import WorkStream


class Graph:
    """Recorded work, run by `WorkStream.launch`; immutable.

    `captured` says whether the device runs it as its own graph; else its
    commands are submitted again as one batch.
    """

    def __init__(self, native: Any, keep: list[object], work: Scheduler) -> None:
        self.native = native
        self.work = work
        self._keep = keep
        info = ffi.new("bp_runtime_graph_info *")
        check_stream(library().bp_runtime_graph_info_of(native, info))
        self.batches = int(info.batches)
        self.commands = int(info.commands)
        self.captured = bool(info.captured)

    def release(self) -> None:
        """Give it back; launches that wait still run it. Twice is fine."""
        if self.native != ffi.NULL:
            native, self.native = self.native, ffi.NULL
            check_stream(library().bp_runtime_graph_release(native))


class RecordedFence(tuple[Timeline, int]):
    """The fence of a recorded batch: a name inside its recording.

    The stream's timeline does not move for it, and reaches its value by a later batch, so
    nothing outside may wait for it.
    """

    recording: Recording

    def __new__(cls, timeline: Timeline, value: int, recording: Recording) -> Self:
        """As the tuple that other submits return."""
        made = super().__new__(cls, (timeline, value))
        made.recording = recording
        return made


class Recording:
    """Streams whose submits are recorded and not run; a context, see `Scheduler.record`."""

    def __init__(self, work: Scheduler, streams: Sequence[WorkStream]) -> None:
        self._work = work
        self.streams = list(streams)
        self.batches: list[object] = []
        self._graph: Graph | None = None
        numbers = ffi.new("uint32_t[]", [stream.number for stream in streams])
        out = ffi.new("bp_runtime_recording **")
        check_stream(library().bp_runtime_graph_begin(work.native, numbers, len(self.streams), out))
        self._native = out[0]

    @property
    def graph(self) -> Graph:
        """What was recorded, after the context has ended well."""
        if self._graph is None:
            raise OptionsInvalid("the recording has not ended", remedy="leave its context first")
        return self._graph

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._work.recording = None
        out = ffi.NULL if kind else ffi.new("bp_runtime_graph **")
        check_stream(library().bp_runtime_graph_end(self._work.native, self._native, out))
        if kind is None:
            self._graph = Graph(out[0], self.batches, self._work)
            self._work.graphs.append(self._graph)
