"""Queues: order, asynchrony, refusal before anything runs, failure afterwards."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from bedplate.hal.api import (
    I32,
    U64,
    Batch,
    DeadlineExceeded,
    Device,
    DeviceError,
    DeviceLost,
    InvalidArgument,
    Module,
    Queue,
    Range,
    WorkCancelled,
    open_device,
)

SECOND_NS = 1_000_000_000


def test_commands_run_in_order(device: Device, queue: Queue) -> None:
    """A copy sees the fill before it, and the next fill does not reach back."""
    a, b = device.allocate(16), device.allocate(16)
    batch = Batch()
    batch.fill(a, 0x11111111)
    batch.copy(b, a, 8)
    batch.fill(a, 0x22222222)
    batch.copy(Range(b, 8, 8), Range(a, 0, 8))
    queue.submit(batch)
    queue.synchronize(SECOND_NS)
    assert b.view("u4").tolist() == [0x11111111] * 2 + [0x22222222] * 2


def test_a_batch_may_be_submitted_again(device: Device, queue: Queue, kernels: Module) -> None:
    """Recorded once, run many times."""
    out = device.upload(np.zeros(5, "u4"))
    batch = Batch()
    batch.launch(kernels.kernel("count_blocks"), (5,), [out])
    for _ in range(20):
        queue.submit(batch)
    assert queue.download(out).tolist() == [20] * 5


def test_submit_does_not_wait(device: Device, queue: Queue, kernels: Module) -> None:
    """A batch that holds leaves the caller free; a deadline passes and the device goes on."""
    flag = device.upload(np.zeros(2, "u4"))
    batch = Batch()
    batch.launch(kernels.kernel("hold"), (1,), [flag])
    queue.submit(batch)
    with pytest.raises(DeadlineExceeded):
        queue.synchronize(20_000_000)
    flag.view()[0] = 1
    queue.synchronize(10 * SECOND_NS)


def test_a_batch_waits_for_its_fence(device: Device, queue: Queue) -> None:
    """Nothing of it runs before, and its signal comes after."""
    gate, done = device.timeline(), device.timeline(5)
    out = device.upload(np.zeros(1, "u4"))
    batch = Batch()
    batch.fill(out, 9)
    queue.submit(batch, wait=[(gate, 3)], signal=[(done, 6)])
    with pytest.raises(DeadlineExceeded):
        done.wait(6, 20_000_000)
    assert out.view()[0] == 0
    gate.signal(3)
    done.wait(6, 10 * SECOND_NS)
    assert out.view()[0] == 9
    assert done.value == 6


def test_timestamps_grow(device: Device, queue: Queue) -> None:
    """Nanoseconds of the monotonic clock, between submit and wait."""
    out = device.upload(np.zeros(2, "u8"))
    batch = Batch()
    batch.timestamp(Range(out.buffer, 0, 8))
    batch.timestamp(Range(out.buffer, 8, 8))
    before = time.monotonic_ns()
    queue.submit(batch)
    first, second = queue.download(out).tolist()
    assert before <= first <= second <= time.monotonic_ns()


def test_a_refused_batch_has_no_effect(device: Device, queue: Queue) -> None:
    """The last command is wrong: the first did not run, and the queue goes on."""
    out = device.upload(np.zeros(4, "u4"))
    batch = Batch()
    batch.fill(out, 1)
    batch.fill(Range(out.buffer, 8, 16), 2)
    with pytest.raises(InvalidArgument, match=r"command 1: .*past the end"):
        queue.submit(batch)
    assert queue.download(out).tolist() == [0] * 4


@pytest.mark.parametrize(
    ("offset", "length"),
    [(0, 17), (16, 1), (17, 0), ((1 << 64) - 8, 16), (8, (1 << 64) - 4)],
)
def test_ranges_are_checked(device: Device, queue: Queue, offset: int, length: int) -> None:
    """Past the end, and where offset + length overflows."""
    batch = Batch()
    batch.fill(Range(device.allocate(16), offset, length), 0)
    with pytest.raises(InvalidArgument):
        queue.submit(batch)


def test_a_stale_handle_is_refused(device: Device, queue: Queue) -> None:
    """A recorded command of released memory; the slot's next owner is not touched."""
    buffer = device.allocate(16)
    batch = Batch()
    batch.fill(buffer, 1)
    buffer.release()
    other = device.upload(np.zeros(4, "u4"))
    with pytest.raises(InvalidArgument, match="not a live handle of a memory"):
        queue.submit(batch)
    assert other.view().tolist() == [0] * 4


def test_memory_in_flight_survives_its_release(
    device: Device, queue: Queue, kernels: Module
) -> None:
    """Storage stays until the batches submitted before are done."""
    flag, out = device.upload(np.zeros(2, "u4")), device.upload(np.zeros(4, "u4"))
    target = device.allocate(16)
    batch = Batch()
    batch.launch(kernels.kernel("hold"), (1,), [flag])
    batch.fill(target, 7)
    batch.copy(out, target)
    queue.submit(batch)
    target.release()
    flag.view()[0] = 1
    assert queue.download(out).tolist() == [7] * 4


def test_overlapping_copies_and_odd_fills_are_refused(device: Device, queue: Queue) -> None:
    """Both would have no defined result."""
    buffer = device.allocate(64)
    overlapping = Batch()
    overlapping.copy(Range(buffer, 0, 32), Range(buffer, 16, 32))
    odd = Batch()
    odd.fill(Range(buffer, 0, 7), 0)
    for batch, words in ((overlapping, "overlap"), (odd, "a fill of 7 bytes")):
        with pytest.raises(InvalidArgument, match=words):
            queue.submit(batch)


def test_a_queue_that_waits_for_a_fence_sleeps(device: Device, queue: Queue) -> None:
    """It looks now and then whether it was cancelled, and leaves the processor to others."""
    gate, done = device.timeline(), device.timeline()
    queue.submit(Batch(), wait=[(gate, 1)], signal=[(done, 1)])
    before = time.process_time()
    time.sleep(0.3)
    used = time.process_time() - before
    gate.signal(1)
    done.wait(1, SECOND_NS)
    assert used < 0.15


def test_a_poisoned_fence_poisons_what_waits_for_it(
    device: Device, queue: Queue, kernels: Module
) -> None:
    """The sentence of the first cause goes along."""
    done, after = device.timeline(), device.timeline()
    batch = Batch()
    batch.launch(kernels.kernel("fail_at"), (1,), [U64(0)])
    queue.submit(batch, signal=[(done, 1)])
    with device.queue() as second:
        second.submit(Batch(), wait=[(done, 1)], signal=[(after, 1)])
        with pytest.raises(DeviceError, match=r"waited for failed: .*told to fail"):
            after.wait(1)


def test_a_lost_device_stays_lost_and_others_work(
    device: Device, queue: Queue, kernels: Module
) -> None:
    """All its timelines are poisoned, new work is refused, another device computes."""
    bystander = device.timeline()
    batch = Batch()
    batch.launch(kernels.kernel("give_status"), (1,), [np.int32(-8)])
    queue.submit(batch)
    with pytest.raises(DeviceLost):
        queue.synchronize(SECOND_NS)
    with pytest.raises(DeviceLost):
        bystander.wait(1)
    for refused in (lambda: queue.submit(Batch()), lambda: device.allocate(1), device.timeline):
        with pytest.raises(DeviceLost, match="the device is lost"):
            refused()
    with open_device("cpu", trust_claims=True) as other, other.queue() as working:
        out = other.upload(np.zeros(1, "u4"))
        batch = Batch()
        batch.fill(out, 3)
        working.submit(batch)
        assert working.download(out).tolist() == [3]


def test_destroying_a_queue_cancels_what_waits(device: Device, kernels: Module) -> None:
    """A kernel that looks at its flag ends; the batch behind it and its fence are cancelled."""
    flag, out = device.upload(np.zeros(2, "u4")), device.upload(np.zeros(1, "u4"))
    held, behind = device.timeline(), device.timeline()
    queue, batch, fill = device.queue(), Batch(), Batch()
    batch.launch(kernels.kernel("hold"), (1,), [flag])
    fill.fill(out, 1)
    queue.submit(batch, signal=[(held, 1)])
    queue.submit(fill, signal=[(behind, 1)])
    while not flag.view()[1]:
        time.sleep(0.001)
    queue.destroy()
    for timeline in (held, behind):
        with pytest.raises(WorkCancelled):
            timeline.wait(1)
    assert out.view()[0] == 0


def test_destroying_a_queue_ends_a_wait_that_never_ends(device: Device) -> None:
    """A fence that nobody signals does not hold the queue back."""
    queue, done = device.queue(), device.timeline()
    queue.submit(Batch(), wait=[(device.timeline(), 1)], signal=[(done, 1)])
    queue.destroy()
    with pytest.raises(WorkCancelled):
        done.wait(1)


def test_closing_a_device_ends_everything(kernels: Module, conform_module: str) -> None:
    """Running, waiting and host waits end; close returns."""
    with open_device("cpu", trust_claims=True) as device:
        flag = device.upload(np.zeros(2, "u4"))
        batch = Batch()
        batch.launch(device.load_native_module(conform_module).kernel("hold"), (1,), [flag])
        queue = device.queue()
        queue.submit(batch)
        queue.submit(Batch(), wait=[(device.timeline(), 1)])
    assert device.closed


def test_a_signal_that_does_not_grow_poisons(device: Device, queue: Queue) -> None:
    """From a batch it is found when it runs; the sentence has both values."""
    done = device.timeline(4)
    queue.submit(Batch(), signal=[(done, 4)])
    with pytest.raises(DeviceError, match="at 4 cannot be signalled to 4"):
        done.wait(5)


def test_a_failure_does_not_hide_what_runs_behind_it(
    device: Device, queue: Queue, kernels: Module
) -> None:
    """It is told at once; the next wait is for the batches that were submitted behind it."""
    gate, out = device.timeline(), device.upload(np.zeros(4, "u1"))
    fails, fills = Batch(), Batch()
    fails.launch(kernels.kernel("give_status"), (1,), [I32(-12)])
    fills.fill(out, 0x07070707)
    queue.submit(fails)
    queue.submit(fills, wait=[(gate, 1)])
    with pytest.raises(DeviceError):
        queue.synchronize(10 * SECOND_NS)
    with pytest.raises(DeadlineExceeded):
        queue.synchronize(20_000_000)
    gate.signal(1)
    assert queue.download(out).tolist() == [7] * 4


def test_any_thread_may_submit(device: Device, queue: Queue) -> None:
    """The queue's own timeline moves once for each batch, whoever submitted it."""
    out, batch = device.allocate(4), Batch()
    batch.fill(out, 1)

    def submit() -> None:
        for _ in range(300):
            queue.submit(batch)

    threads = [threading.Thread(target=submit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    queue.synchronize(10 * SECOND_NS)
    assert queue._progress.value == 2400


@pytest.mark.parametrize("number", [-1, 1 << 64])
def test_numbers_that_no_field_holds_are_refused(
    device: Device, queue: Queue, kernels: Module, number: int
) -> None:
    """As what they are, not as an overflow somewhere inside."""
    timeline, kernel = device.timeline(), kernels.kernel("nothing")
    calls: list[Callable[[], object]] = [
        lambda: device.allocate(16, alignment=number),
        lambda: device.timeline(number),
        lambda: timeline.wait(number, 0),
        lambda: timeline.signal(number),
        lambda: queue.submit(Batch(), tag=number),
        lambda: queue.submit(Batch(), wait=[(timeline, number)]),
        lambda: queue.submit(Batch(), signal=[(timeline, number)]),
        lambda: Batch().launch(kernel, (1,), shared_bytes=number),
    ]
    for call in calls:
        with pytest.raises(InvalidArgument, match=str(number)):
            call()
    assert timeline.value == 0
