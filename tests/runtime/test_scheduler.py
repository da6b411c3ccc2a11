"""The scheduler on `cpu`: order, room, priorities, waits, failures, stops, graphs."""

from __future__ import annotations

import dataclasses
import gc
import threading
import time

import numpy as np
import pytest

from bedplate.hal.api import U64, Batch, Device, Module, Tensor
from bedplate.runtime.api import (
    Allocator,
    BatchFailed,
    Checker,
    OptionsInvalid,
    RuntimeFault,
    Scheduler,
    SchedulerStopped,
    StreamDeadline,
    WorkStream,
    span_of,
)

SOON = 5_000_000_000


def fill(tensor: Tensor, value: int) -> Batch:
    """A batch that writes a number everywhere."""
    batch = Batch()
    batch.fill(tensor, value)
    return batch


def copy(target: Tensor, source: Tensor) -> Batch:
    """A batch of one copy."""
    batch = Batch()
    batch.copy(target, source)
    return batch


def failing(kernels: Module, block: int = 0) -> Batch:
    """A batch whose kernel fails with `block N was told to fail`."""
    batch = Batch()
    batch.launch(kernels.kernel("fail_at"), (1,), [U64(block)])
    return batch


def words(device: Device, count: int = 16) -> Tensor:
    """Zeros."""
    return device.upload(np.zeros(count, "u4"))


def until(condition: object) -> None:
    """Poll, for what nothing signals."""
    end = time.monotonic() + 5
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.001)


def test_streams_are_ordered_by_their_fences(device: Device, work: Scheduler) -> None:
    """A chain across two streams, a hundred times over, each link seen."""
    main, side = work.stream(), work.stream()
    x, y = words(device), words(device)
    last = main.submit()
    for value in range(100):
        filled = main.submit(fill(x, value), wait=[last])
        last = side.submit(copy(y, x), wait=[filled])
    side.synchronize(SOON)
    assert device.download(y)[0] == 99
    stats = main.queue.stats()
    assert (stats.submitted, stats.handed, stats.failed) == (201, 201, 0)


def test_a_batch_is_copied(device: Device, work: Scheduler) -> None:
    """What was submitted and let go of still runs, its buffers kept while it is parked."""
    main = work.stream()
    gate, y = device.timeline(), words(device)
    x = device.upload(np.full(16, 7, "u4"))
    main.submit(copy(y, x), wait=[(gate, 1)])
    del x
    gc.collect()
    time.sleep(0.02)
    work.signal((gate, 1))
    main.synchronize(SOON)
    assert device.download(y)[0] == 7


@pytest.mark.parametrize("device_waits", [False, True])
def test_a_wait_for_the_host(device: Device, work: Scheduler, device_waits: bool) -> None:
    """Parked here or waiting on the device, it runs when the host says so, not before."""
    stream = work.stream(work.queue(device_waits=device_waits))
    gate, x = device.timeline(), words(device)
    fence = stream.submit(fill(x, 3), wait=[(gate, 2)])
    work.signal((gate, 1))
    with pytest.raises(StreamDeadline):
        work.wait(fence, 20_000_000)
    gate.signal(2)  # not by the scheduler: a watcher sees it
    work.wait(fence, SOON)
    assert device.download(x)[0] == 3


def test_more_parked_fences_than_watchers(device: Device, work: Scheduler) -> None:
    """Forty timelines, signalled behind the scheduler's back in reverse."""
    queue = work.queue()
    gates = [device.timeline() for _ in range(40)]
    streams = [work.stream(queue) for _ in gates]
    fences = [s.submit(wait=[(g, 1)]) for s, g in zip(streams, gates, strict=True)]
    until(lambda: queue.stats().parked == 40)
    for gate in reversed(gates):
        gate.signal(1)
    for fence in fences:
        work.wait(fence, SOON)
    assert queue.stats().wakes == 40


def test_a_full_ring_is_waited_for(device: Device) -> None:
    """Until its deadline; nothing that was accepted is lost, and room lets others in."""
    with Scheduler(device, capacity=4) as work:
        stream = work.stream()
        gate = device.timeline()
        for _ in range(4):
            stream.submit(wait=[(gate, 1)])
        with pytest.raises(StreamDeadline, match="stayed full"):
            stream.submit(room_ns=10_000_000)
        late: list[object] = []
        thread = threading.Thread(target=lambda: late.append(stream.submit(room_ns=SOON)))
        thread.start()
        until(lambda: stream.queue.stats().full_waits == 2)
        work.signal((gate, 1))
        thread.join()
        assert late == [(stream.timeline, 5)]
        stream.synchronize(SOON)
        assert stream.queue.stats().handed == 5


def test_many_threads_submit_to_few_streams(device: Device) -> None:
    """Six threads, three streams, a ring of eight: each batch runs once, values in order."""
    with Scheduler(device, capacity=8) as work:
        streams = [work.stream() for _ in range(3)]
        counts = [[] for _ in streams]

        def produce(index: int) -> None:
            for _ in range(200):
                counts[index % 3].append(streams[index % 3].submit()[1])

        threads = [threading.Thread(target=produce, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for stream, values in zip(streams, counts, strict=True):
            work.wait((stream.timeline, 400), SOON)
            assert sorted(values) == list(range(1, 401))
            assert stream.timeline.value == 400


def run_order(device: Device, work: Scheduler, rows: list[tuple[WorkStream, int]]) -> list[int]:
    """Which stream's batch ran when, of rows that a gate lets go together."""
    gate = device.timeline()
    places = []
    for index, (stream, count) in enumerate(rows):
        for _ in range(count):
            clock = device.upload(np.zeros(1, "u8"))
            batch = Batch()
            batch.timestamp(clock)
            stream.submit(batch, wait=[(gate, 1)])
            places.append((clock, index))
    until(lambda: rows[0][0].queue.stats().parked >= len(rows))
    work.signal((gate, 1))
    for stream, _ in rows:
        stream.synchronize(SOON)
    return [i for _, i in sorted((int(device.download(c)[0]), i) for c, i in places)]


def test_priorities_go_first(device: Device, work: Scheduler) -> None:
    """With a window of one batch; the order of submits decides among equals."""
    queue = work.queue(window=1)
    rows = [(work.stream(queue, priority=p), 2) for p in (0, 5, 1)]
    assert run_order(device, work, rows) == [1, 1, 2, 2, 0, 0]


def test_a_low_priority_is_overtaken_so_often_and_no_more(device: Device) -> None:
    """`ageing` later batches of a higher priority pass, then it runs."""
    with Scheduler(device, ageing=3) as work:
        queue = work.queue(window=1)
        rows = [(work.stream(queue), 1), (work.stream(queue, priority=9), 12)]
        assert run_order(device, work, rows) == [1, 1, 1, 0, *[1] * 9]
        assert queue.stats().overtaken_most == 3


def test_a_window_keeps_later_batches_back(
    device: Device, work: Scheduler, kernels: Module
) -> None:
    """While the device is busy two batches are with it; one that comes later still goes first."""
    queue = work.queue(window=2)
    low, high = work.stream(queue), work.stream(queue, priority=1)
    flag, x = words(device), words(device)
    hold = Batch()
    hold.launch(kernels.kernel("hold"), (1,), [flag])
    low.submit(hold)
    for value in range(1, 6):
        low.submit(fill(x, value))
    until(lambda: queue.stats().handed == 2)
    seen = words(device)
    fence = high.submit(copy(seen, x))
    time.sleep(0.02)
    assert queue.stats().handed == 2
    flag.view()[0] = 1
    work.wait(fence, SOON)
    low.synchronize(SOON)
    assert device.download(seen)[0] == 1
    assert device.download(x)[0] == 5


def test_a_wait_past_its_deadline_fails_the_batch(device: Device, work: Scheduler) -> None:
    """And what waits for it, with its tag; other streams go on."""
    one, two, three = work.stream(), work.stream(), work.stream()
    gate, x = device.timeline(), words(device)
    fence = one.submit(fill(x, 1), wait=[(gate, 1)], wait_ns=20_000_000, tag=31)
    behind = two.submit(fill(x, 2), wait=[fence], tag=32)
    with pytest.raises(BatchFailed, match=r"batch 31: .*at 0 and did not reach 1") as failed:
        work.wait(fence, SOON)
    assert failed.value.status == -7
    with pytest.raises(BatchFailed, match=r"batch 32: batch 31: "):
        work.wait(behind, SOON)
    three.submit(fill(x, 3))
    three.synchronize(SOON)
    assert device.download(x)[0] == 3


@pytest.mark.parametrize("device_waits", [False, True])
def test_a_failing_kernel_poisons_what_waits(
    device: Device, work: Scheduler, kernels: Module, device_waits: bool
) -> None:
    """Through two streams of two queues, with the tag and the kernel's own sentence."""
    one = work.stream()
    two = work.stream(work.queue(device_waits=device_waits))
    told = device.timeline()
    fence = one.submit(failing(kernels), tag=41, signal=[(told, 1)])
    x = words(device)
    behind = two.submit(fill(x, 2), wait=[fence], tag=42)
    for waited in (fence, (told, 1), behind):
        with pytest.raises(BatchFailed, match=r"batch 41, .*was told to fail"):
            work.wait(waited, SOON)
    assert device.download(x)[0] == 0
    one.reset()
    work.wait(one.submit(fill(x, 5)), SOON)
    assert device.download(x)[0] == 5


def test_a_stream_that_failed_runs_nothing_until_reset(
    device: Device, work: Scheduler, kernels: Module
) -> None:
    """What comes after would read what the failed batch left half done."""
    stream, x = work.stream(), words(device)
    with pytest.raises(BatchFailed):
        work.wait(stream.submit(failing(kernels), tag=1), SOON)
    with pytest.raises(BatchFailed, match=r"batch 1, .*told to fail"):
        work.wait(stream.submit(fill(x, 9), tag=2), SOON)
    stream.reset()
    fence = stream.submit()
    assert fence == (stream.timeline, 1), "a new timeline begins at 0"
    work.wait(fence, SOON)
    assert device.download(x)[0] == 0


def test_what_the_device_refuses_fails_like_the_rest(device: Device, work: Scheduler) -> None:
    """A released buffer: the sentence of the HAL, and the plain HAL's waiters wake too."""
    stream, x = work.stream(), words(device)
    told = device.timeline()
    gate = device.timeline()
    batch = fill(x, 1)
    stream.submit(batch, wait=[(gate, 1)], signal=[(told, 1)], tag=51)
    x.buffer.release()
    work.signal((gate, 1))
    with pytest.raises(BatchFailed, match=r"batch 51: .*not a live"):
        work.wait((told, 1), SOON)
    with pytest.raises(Exception, match=r"batch 51|destroyed"):
        told.wait(1, SOON)


def test_stop_cancels_what_was_not_handed_over(device: Device) -> None:
    """Its waiters learn it; a submit blocked on a full ring and one that comes later are told."""
    with Scheduler(device, capacity=2) as work:
        stream, free = work.stream(), work.stream(work.queue())
        gate = device.timeline()
        first = free.submit()
        work.wait(first, SOON)
        fences = [stream.submit(wait=[(gate, 1)], tag=tag) for tag in (61, 62)]
        caught: list[Exception] = []

        def block() -> None:
            try:
                stream.submit(room_ns=SOON)
            except SchedulerStopped as error:
                caught.append(error)

        thread = threading.Thread(target=block)
        thread.start()
        until(lambda: stream.queue.stats().full_waits == 1)
        work.stop(SOON)
        thread.join()
        assert len(caught) == 1
        for fence in fences:
            with pytest.raises(BatchFailed, match=r"batch 61: .*stopped before") as failed:
                work.wait(fence, SOON)
            assert failed.value.status == -10
        with pytest.raises(SchedulerStopped):
            free.submit()
        work.stop()


def test_stop_lets_finish_what_was_handed_over(device: Device) -> None:
    """Until the deadline."""
    with Scheduler(device) as work:
        stream = work.stream()
        x = words(device)
        for value in range(500):
            stream.submit(fill(x, value))
        until(lambda: stream.queue.stats().waiting == 0)
        work.stop(SOON)
        assert device.download(x)[0] == 499
        assert stream.timeline.value == 500


@pytest.mark.parametrize("captures", [True, False])
def test_a_graph_replays(
    device: Device, captures: bool, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two streams and the fence between them become one batch, run as often as asked, by the
    device's own graph or by ours."""
    kept = device.info.capabilities - (set() if captures else {"capture"})
    monkeypatch.setattr(device, "info", dataclasses.replace(device.info, capabilities=kept))
    work = request.getfixturevalue("work")
    main, side = work.stream(), work.stream()
    x, y = words(device), words(device)
    edge = device.timeline()
    with work.record(main, side) as recording:
        filled = main.submit(fill(x, 8), signal=[(edge, 1)])
        side.submit(copy(y, x), wait=[filled, (edge, 1)])
    graph = recording.graph
    assert (graph.batches, graph.commands, graph.captured) == (2, 2, captures)
    assert device.download(y)[0] == 0
    gate = device.timeline()
    fence = main.launch(graph, wait=[(gate, 1)], tag=71)
    graph.release()
    work.signal((gate, 1))
    work.wait(fence, SOON)
    assert device.download(y)[0] == 8
    main.submit(fill(y, 1))
    main.synchronize(SOON)
    assert device.download(y)[0] == 1
    assert edge.value == 0


def test_a_recording_with_fences_outside_is_no_graph(device: Device, work: Scheduler) -> None:
    """A wait for earlier work, for a host's timeline, or a signal that nobody inside wants."""
    main, side = work.stream(), work.stream()
    outside = device.timeline()
    earlier = side.submit()
    work.wait(earlier, SOON)
    for wait in ((outside, 1), earlier):
        with (
            pytest.raises(OptionsInvalid, match="batch 81 of a recording waits"),
            work.record(main),
        ):
            main.submit(wait=[wait], tag=81)
    before = main.submit()
    again = work.record(main)
    main.submit(tag=84)
    with pytest.raises(OptionsInvalid, match="batch 85 of a"):
        main.submit(wait=[before], tag=85)
    with pytest.raises(OptionsInvalid, match="no graph: batch 85"):
        again.__exit__(None, None, None)
    with pytest.raises(OptionsInvalid, match="batch 82 of a recording moves"), work.record(main):
        main.submit(signal=[(outside, 1)], tag=82)
    spoiled = work.record(main)
    with pytest.raises(OptionsInvalid, match="batch 83 of a"):
        main.submit(wait=[(outside, 1)], tag=83)
    main.submit()
    with pytest.raises(OptionsInvalid, match="no graph: batch 83"):
        spoiled.__exit__(None, None, None)
    with work.record(main) as recording:
        main.submit()
    work.wait(main.launch(recording.graph), SOON)


def test_commands_that_cannot_be_kept_are_refused(device: Device, work: Scheduler) -> None:
    """Before anything is in the ring."""
    stream, batch = work.stream(), fill(words(device), 1)
    batch._commands[0].kind = 99
    with pytest.raises(RuntimeFault, match="kind 99"):
        stream.submit(batch)
    assert stream.queue.stats().submitted == 0


def test_arguments_out_of_range_are_refused(device: Device) -> None:
    """With the value in the sentence."""
    with pytest.raises(OptionsInvalid, match="ring of 3"):
        Scheduler(device, capacity=3)
    with Scheduler(device) as work:
        with pytest.raises(OptionsInvalid, match="window is 65"):
            work.queue(window=65)
        with pytest.raises(OptionsInvalid, match="timeout of -1"):
            work.stream().submit(wait_ns=-1)
        with pytest.raises(OptionsInvalid, match="no streams"):
            work.record()
        assert work.recording is None


def test_the_scheduler_feeds_the_checker(device: Device) -> None:
    """A missing wait is found, with both lines of this file; its twin is clean."""
    for with_wait in (False, True):
        checker = Checker()
        with Scheduler(device, checker=checker) as work, Allocator(device) as memory:
            main, side = work.stream(), work.stream()
            pool, owner = memory.pool("scratch"), memory.stream()
            block = pool.allocate(4096, owner)
            assert span_of(block).length == block.bytes
            x = words(device)
            filled = main.submit(fill(x, 1), writes=[x, block])
            side.submit(copy(words(device), x), reads=[x], wait=[filled] if with_wait else [])
            side.synchronize(SOON)
            main.synchronize(SOON)
            found = checker.findings()
            assert len(found) == (0 if with_wait else 1)
            assert all(str(h).count("test_scheduler.py:") == 2 for h in found)
