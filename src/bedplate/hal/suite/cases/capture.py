"""capture: recorded work that is launched as one."""

from __future__ import annotations

from typing import Any

from bedplate.hal import abi
from bedplate.hal.batch import Batch
from bedplate.hal.native import ffi, new
from bedplate.hal.suite.registry import case
from bedplate.hal.suite.subject import Subject, expect

BAD = abi.BP_INVALID_ARGUMENT


def record(s: Subject, queue: int, *batches: Batch) -> int:
    """The graph of batches."""
    out = ffi.new("uint64_t *")
    s.works(s.api.capture.begin(s.handle, queue), "capture.begin")
    for batch in batches:
        s.works(s.submit(queue, batch), "submitting while capturing")
    s.works(s.api.capture.end(s.handle, queue, out), "capture.end")
    return int(out[0])


def launch(
    s: Subject, queue: int, graph: int, wait: tuple[int, int] | None, signal: tuple[int, int] | None
) -> int:
    """The status of launching a graph with at most one fence of each kind."""
    waits, signals = (
        ffi.new("bp_fence[]", [wait or (0, 0)]),
        ffi.new("bp_fence[]", [signal or (0, 0)]),
    )
    fences: Any = new("bp_batch", wait_count=int(wait is not None))
    fences.signal_count = int(signal is not None)
    fences.wait, fences.signal = waits, signals
    return int(s.api.capture.launch(s.handle, queue, graph, fences))


@case("capture", "positive")
def captured_work_runs_when_launched(s: Subject) -> None:
    """Not while it is recorded, and as often as it is launched."""
    buffer, queue, out, done = s.memory(64), s.queue(), ffi.new("uint64_t *"), s.timeline()
    table, batch = s.api.capture, Batch()
    batch.fill(buffer, 0x01010101)
    s.works(table.begin(s.handle, queue), "capture.begin")
    s.works(s.submit(queue, batch), "submitting while capturing")
    s.works(table.end(s.handle, queue, out), "capture.end")
    expect(s.content(buffer) == bytes(64), "captured work ran while it was recorded")
    fences = new("bp_batch", signal_count=1)
    signal = ffi.new("bp_fence[]", [(done, 1)])
    fences.signal = signal
    s.works(table.launch(s.handle, queue, out[0], fences), "capture.launch")
    s.works(s.wait(done, 1), "waiting for captured work")
    expect(s.content(buffer) == b"\x01" * 64, "captured work did not run")
    s.works(table.release(s.handle, out[0]), "capture.release")


@case("capture", "positive")
def a_graph_runs_in_order_and_again(s: Subject) -> None:
    """Kernels, copies and fills of several batches; three launches on another queue."""
    a, b, done = s.memory(256), s.memory(256), s.timeline()
    first, second = Batch(), Batch()
    first.launch(s.kernel("count_blocks"), (64,), [a])
    second.copy(b, a)
    queue, other = s.queue(), s.queue()
    graph = record(s, queue, first, second)
    for turn in range(3):
        s.works(launch(s, other, graph, None, (done, turn + 1)), "capture.launch")
    s.works(s.wait(done, 3), "waiting for three launches")
    expect(s.words(b, "u4") == [3] * 64, "three launches of a graph did not each run once")


@case("capture", "positive")
def a_launch_waits_for_its_fence(s: Subject) -> None:
    """A graph is held as a batch is, and the queue that recorded it works on."""
    buffer, gate, done, queue = s.memory(64), s.timeline(), s.timeline(), s.queue()
    fill, after = Batch(), Batch()
    fill.fill(buffer, 0x01010101)
    graph = record(s, queue, fill)
    s.works(launch(s, queue, graph, (gate, 1), None), "capture.launch")
    after.fill(buffer, 0x02020202)
    s.works(s.submit(queue, after, signal=[(done, 1)]), "queue.submit behind a graph")
    expect(s.content(buffer) == bytes(64), "a graph ran before its fence")
    s.works(s.api.timeline.signal(s.handle, gate, 1), "timeline.signal")
    s.works(s.wait(done, 1), "waiting behind a graph")
    expect(s.content(buffer) == b"\x02" * 64, "a batch overtook the graph before it")


@case("capture", "negative")
def wrong_turns_are_refused(s: Subject) -> None:
    """begin twice, end without begin, a launch with commands, a graph that is gone or was none."""
    queue, out, batch, table = s.queue(), ffi.new("uint64_t *"), Batch(), s.api.capture
    batch.fill(s.memory(64), 0)
    s.refuses(table.end(s.handle, queue, out), BAD, "ending what was not begun")
    s.works(table.begin(s.handle, queue), "capture.begin")
    s.refuses(table.begin(s.handle, queue), (abi.BP_BUSY, BAD), "beginning twice")
    s.refuses(table.end(s.handle, queue, ffi.NULL), BAD, "capture.end without a result")
    s.works(table.end(s.handle, queue, out), "capture.end")
    fences = new("bp_batch", command_count=1)
    fences.commands = batch.pointers()
    s.refuses(table.launch(s.handle, queue, out[0], fences), BAD, "a launch with commands")
    s.refuses(launch(s, queue, s.timeline(), None, None), BAD, "launching a timeline")
    s.works(table.release(s.handle, out[0]), "capture.release")
    s.refuses(launch(s, queue, int(out[0]), None, None), BAD, "launching a graph that is gone")
    s.refuses(table.release(s.handle, out[0]), BAD, "releasing twice")


@case("capture", "negative")
def recorded_batches_have_no_fences(s: Subject) -> None:
    """A wait or a signal inside a recording is refused, and the recording goes on."""
    queue, done, out = s.queue(), s.timeline(), ffi.new("uint64_t *")
    s.works(s.api.capture.begin(s.handle, queue), "capture.begin")
    s.refuses(s.submit(queue, Batch(), signal=[(done, 1)]), BAD, "a signal inside a recording")
    s.refuses(s.submit(queue, Batch(), wait=[(done, 0)]), BAD, "a wait inside a recording")
    s.works(s.api.capture.end(s.handle, queue, out), "capture.end")
    expect(s.value(done) == (abi.BP_OK, 0), "a refused recording moved a timeline")


@case("capture", "positive")
def a_released_graph_still_runs_what_was_launched(s: Subject) -> None:
    """Its handle is stale at once, its commands live until the launch is done."""
    buffer, gate, done, queue = s.memory(64), s.timeline(), s.timeline(), s.queue()
    batch = Batch()
    batch.fill(buffer, 0x03030303)
    graph = record(s, queue, batch)
    s.works(launch(s, queue, graph, (gate, 1), (done, 1)), "capture.launch")
    s.works(s.api.capture.release(s.handle, graph), "capture.release")
    s.refuses(launch(s, queue, graph, None, None), BAD, "launching a graph that is gone")
    s.works(s.api.timeline.signal(s.handle, gate, 1), "timeline.signal")
    s.works(s.wait(done, 1), "waiting for a graph that was released")
    expect(s.content(buffer) == b"\x03" * 64, "a released graph did not run")


@case("capture", "positive")
def an_empty_graph_gives_its_signal(s: Subject) -> None:
    """A recording without commands is a graph like any other."""
    done, queue = s.timeline(), s.queue()
    graph = record(s, queue)
    s.works(launch(s, queue, graph, None, (done, 1)), "capture.launch")
    s.works(s.wait(done, 1), "waiting for an empty graph")


@case("capture", "negative")
def a_refused_batch_leaves_the_recording_as_it_was(s: Subject) -> None:
    """What was recorded before it and after it is the graph."""
    buffer, done, queue, out = s.memory(64), s.timeline(), s.queue(), ffi.new("uint64_t *")
    first, wrong, last = Batch(), Batch(), Batch()
    first.fill(buffer, 0x01010101)
    wrong.fill(buffer, 0x02020202)
    wrong.fill(s.memory(64), 0, 65)
    last.copy(s.memory(64), buffer)
    s.works(s.api.capture.begin(s.handle, queue), "capture.begin")
    s.works(s.submit(queue, first), "submitting while capturing")
    s.refuses(s.submit(queue, wrong), BAD, "recording beyond a memory")
    s.works(s.submit(queue, last), "submitting while capturing")
    s.works(s.api.capture.end(s.handle, queue, out), "capture.end")
    s.works(launch(s, queue, int(out[0]), None, (done, 1)), "capture.launch")
    s.works(s.wait(done, 1), "waiting for the graph")
    expect(s.content(buffer) == b"\x01" * 64, "a refused batch is in the graph")


@case("capture", "negative")
def a_queue_may_end_while_it_records(s: Subject) -> None:
    """Nothing of the recording runs, and the device goes on."""
    buffer, queue, batch = s.memory(64), s.queue(), Batch()
    batch.fill(buffer, 0x04040404)
    s.works(s.api.capture.begin(s.handle, queue), "capture.begin")
    s.works(s.submit(queue, batch), "submitting while capturing")
    s.works(s.api.queue.destroy(s.handle, queue), "destroying a queue that records")
    expect(s.content(buffer) == bytes(64), "a recording that never ended ran")
