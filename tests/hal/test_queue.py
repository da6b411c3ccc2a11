"""Queues: order, asynchrony, refusal before anything runs, failure afterwards."""

from __future__ import annotations

import time

import numpy as np
import pytest

from bedplate.hal.api import (
    F32,
    U32,
    U64,
    Batch,
    DeadlineExceeded,
    Device,
    DeviceError,
    DeviceLost,
    InvalidArgument,
    Module,
    OutOfDeviceMemory,
    Queue,
    Range,
    Unsupported,
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


@pytest.mark.parametrize("grid", [(1,), (2,), (3, 5), (7, 3, 11), (1000,)])
@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_every_block_runs_once(
    monkeypatch: pytest.MonkeyPatch,
    conform_module: str,
    grid: tuple[int, ...],
    threads: str,
) -> None:
    """Whatever the number of workers, and many grids one after the other."""
    monkeypatch.setenv("BEDPLATE_HAL_CPU_THREADS", threads)
    blocks = int(np.prod(grid))
    with open_device("cpu", trust_claims=True) as device, device.queue() as queue:
        kernel = device.load_native_module(conform_module).kernel("count_blocks")
        out = device.upload(np.zeros(blocks, "u4"))
        batch = Batch()
        for _ in range(50):
            batch.launch(kernel, grid, [out])
        queue.submit(batch)
        assert queue.download(out).tolist() == [50] * blocks


def test_two_queues_share_the_workers(device: Device, kernels: Module) -> None:
    """Grids of two queues at once are each complete."""
    batch, outs = Batch(), [device.upload(np.zeros(100, "u4")) for _ in range(2)]
    with device.queue() as first, device.queue() as second:
        for out, queue in zip(outs, (first, second), strict=True):
            batch = Batch()
            for _ in range(100):
                batch.launch(kernels.kernel("count_blocks"), (100,), [out])
            queue.submit(batch)
        for out, queue in zip(outs, (first, second), strict=True):
            assert queue.download(out).tolist() == [100] * 100


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


def test_arguments_are_packed_in_order(device: Device, queue: Queue, kernels: Module) -> None:
    """Addresses take 8 bytes, values their own alignment, None a null address."""
    out = device.allocate(256)
    out.view("u1")[:] = 0
    values = [out, U32(0x01020304), U64(0x1122334455667788), b"\x09", None, F32(1.0), b"abcdef"]
    batch = Batch()
    batch.launch(kernels.kernel("echo"), (1,), values)
    queue.submit(batch)
    queue.synchronize(SECOND_NS)
    raw = out.view("u1").tobytes()
    packed = raw[8 : 8 + int.from_bytes(raw[:8], "little")]
    assert int.from_bytes(packed[:8], "little") == out.view("u1").ctypes.data
    assert packed[8:12] == b"\x04\x03\x02\x01"
    assert packed[16:24] == bytes.fromhex("8877665544332211")
    assert packed[24] == 9
    assert packed[32:40] == bytes(8)
    assert packed[40:44] == bytes.fromhex("0000803f")
    assert packed[44:] == b"abcdef"


def test_a_kernel_is_told_its_launch(device: Device, queue: Queue, kernels: Module) -> None:
    """Grid, block, shared memory and the cancel flag are what was asked for."""
    out = device.upload(np.zeros(12, "u4"))
    batch = Batch()
    batch.launch(kernels.kernel("describe"), (2, 3), [out], block=(4, 5), shared_bytes=100)
    queue.submit(batch)
    told = queue.download(out).tolist()
    assert told[:7] == [2, 3, 1, 4, 5, 1, 100]
    assert told[8:] == [1, 0, 1, 1]


def test_shared_memory_belongs_to_one_block_at_a_time(
    device: Device, queue: Queue, kernels: Module
) -> None:
    """Each worker has its own, as large as the limit."""
    most = device.info.limits["dynamic_shared"]
    out = device.upload(np.zeros(40, "u4"))
    batch = Batch()
    batch.launch(kernels.kernel("use_shared"), (40,), [out], shared_bytes=most)
    queue.submit(batch)
    assert queue.download(out).tolist() == [most // 4] * 40


def test_scale_computes(device: Device, queue: Queue, kernels: Module) -> None:
    """A kernel with addresses and values gives the numbers."""
    x = np.arange(1000, dtype="f4")
    y = device.upload(np.zeros(1000, "f4"))
    batch = Batch()
    batch.launch(kernels.kernel("scale"), (16,), [y, device.upload(x), F32(0.5), U32(1000)])
    queue.submit(batch)
    np.testing.assert_array_equal(queue.download(y), x * np.float32(0.5))


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


@pytest.mark.parametrize(
    ("grid", "block", "shared"),
    [((1 << 31, 1 << 31), (1,), 0), ((1,), (33, 32), 0), ((1,), (1,), (1 << 20) + 1)],
)
def test_launch_limits_are_checked(
    device: Device,
    queue: Queue,
    kernels: Module,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    shared: int,
) -> None:
    """Blocks, threads and shared memory beyond what the device has."""
    batch = Batch()
    batch.launch(kernels.kernel("nothing"), grid, block=block, shared_bytes=shared)
    with pytest.raises(InvalidArgument):
        queue.submit(batch)


@pytest.mark.parametrize("grid", [(), (0,), (1, 1, 1, 1), (-1,), (1 << 32,)])
def test_a_grid_that_is_none_is_refused(kernels: Module, grid: tuple[int, ...]) -> None:
    """While it is recorded."""
    with pytest.raises(InvalidArgument, match="grid"):
        Batch().launch(kernels.kernel("nothing"), grid)


def test_too_many_parameter_bytes_are_refused(
    device: Device, queue: Queue, kernels: Module
) -> None:
    """4096 packed bytes fit, one more does not."""
    fits, too_long = Batch(), Batch()
    out = device.allocate(256)
    fits.launch(kernels.kernel("echo"), (1,), [out, bytes(4088)])
    too_long.launch(kernels.kernel("echo"), (1,), [out, bytes(4089)])
    queue.submit(fits)
    queue.synchronize(SECOND_NS)
    with pytest.raises(InvalidArgument, match="more than 4096"):
        queue.submit(too_long)


@pytest.mark.parametrize("block", [0, 3, 99])
def test_a_failing_kernel_poisons_with_its_sentence(
    device: Device, queue: Queue, kernels: Module, block: int
) -> None:
    """Tag, command, kernel and the kernel's own words; the queue goes on."""
    done = device.timeline()
    out = device.upload(np.zeros(1, "u4"))
    batch = Batch()
    batch.launch(kernels.kernel("fail_at"), (100,), [U64(block)])
    batch.fill(out, 1)
    queue.submit(batch, tag=77, signal=[(done, 1)])
    words = rf"batch 77, command 0 \(launch fail_at\): block {block} was told to fail"
    with pytest.raises(DeviceError, match=words) as caught:
        queue.synchronize(SECOND_NS)
    assert caught.value.code == "hal.launch_fault"
    with pytest.raises(DeviceError, match=words):
        done.wait(1)
    with pytest.raises(DeviceError, match=words):
        _ = done.value
    with pytest.raises(DeviceError, match=words):
        done.signal(2)
    assert queue.download(out).tolist() == [0]


@pytest.mark.parametrize(
    ("status", "code"),
    [(-9, "hal.launch_fault"), (-5, "hal.out_of_memory"), (7, "hal.launch_fault")],
)
def test_a_kernel_without_words(
    device: Device, queue: Queue, kernels: Module, status: int, code: str
) -> None:
    """Its status is the code, a positive one is a fault; it is an error of work that ran."""
    batch = Batch()
    batch.launch(kernels.kernel("give_status"), (1,), [np.int32(status)])
    queue.submit(batch)
    with pytest.raises(DeviceError, match="it returned status") as caught:
        queue.synchronize(SECOND_NS)
    assert caught.value.code == code
    assert not isinstance(caught.value, OutOfDeviceMemory)


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


def test_clusters_are_refused(device: Device, queue: Queue, kernels: Module) -> None:
    """A launch attribute that the device does not claim."""
    batch = Batch()
    batch.launch(kernels.kernel("nothing"), (4,))
    batch._commands[0].cluster = [2, 1, 1]
    with pytest.raises(Unsupported, match="cluster"):
        queue.submit(batch)


def test_arguments_that_are_none_are_refused(kernels: Module) -> None:
    """A bare number has no width: the remedy shows how to give it one."""
    with pytest.raises(InvalidArgument, match="cannot be 3") as caught:
        Batch().launch(kernels.kernel("nothing"), (1,), [3])  # type: ignore[list-item]
    assert "U32(3)" in (caught.value.remedy or "")
    with pytest.raises(InvalidArgument, match="-1 is not an argument"):
        U32(-1)
