"""Launches: grids, arguments, shared memory, limits, and kernels that fail."""

from __future__ import annotations

import numpy as np
import pytest

from bedplate.hal.api import (
    F32,
    I32,
    I64,
    U32,
    U64,
    Batch,
    Device,
    DeviceError,
    InvalidArgument,
    Module,
    OutOfDeviceMemory,
    Queue,
    Range,
    Unsupported,
    open_device,
)

SECOND_NS = 1_000_000_000


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
    """4096 packed bytes fit, also behind a batch whose room is less; one more does not."""
    small, fits, too_long = Batch(), Batch(), Batch()
    out = device.allocate(256)
    small.fill(out, 0)
    for _ in range(3):  # the room of the last but one is there for certain
        queue.submit(small)
        queue.synchronize(SECOND_NS)
    whole = Batch()
    whole.launch(kernels.kernel("nothing"), (1,), [bytes(4096)])
    queue.submit(whole)
    fits.launch(kernels.kernel("echo"), (1,), [out, bytes(4088)])
    too_long.launch(kernels.kernel("echo"), (1,), [out, bytes(4089)])
    queue.submit(fits)
    queue.synchronize(SECOND_NS)
    with pytest.raises(InvalidArgument, match="more than 4096"):
        queue.submit(too_long)


def test_a_wrong_argument_is_named(device: Device, queue: Queue, kernels: Module) -> None:
    """A range by what is wrong with it, another by its number, kind and size."""
    buffer = device.allocate(64)
    outside, odd = Batch(), Batch()
    outside.launch(kernels.kernel("nothing"), (1,), [U64(1), Range(buffer, 8, 64)])
    odd.launch(kernels.kernel("nothing"), (1,), [buffer, U64(1)])
    odd._commands[0].arguments[1].kind = 7
    with pytest.raises(InvalidArgument, match=r"command 0: an argument: offset 8 \+ 64 bytes"):
        queue.submit(outside)
    with pytest.raises(InvalidArgument, match="command 0: argument 1 has kind 7 and 8 bytes at "):
        queue.submit(odd)


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


@pytest.mark.parametrize(
    ("value", "packed"),
    [
        (I32(-2), "feffffff"),
        (U32(7), "07000000"),
        (I64(-2), "feffffffffffffff"),
        (U64(7), "0700000000000000"),
        (F32(-1.5), "0000c0bf"),
    ],
)
def test_scalars_have_their_width(value: bytes, packed: str) -> None:
    """Little-endian, as the kernel reads them."""
    assert value.hex() == packed


def test_a_cleared_batch_does_nothing(device: Device, queue: Queue) -> None:
    """Its commands are forgotten, also by the next submit, and it can be recorded anew."""
    out = device.upload(np.zeros(2, "u4"))
    batch = Batch()
    batch.fill(out, 1)
    queue.submit(batch)
    queue.synchronize(SECOND_NS)
    out.view()[:] = 0
    batch.clear()
    assert len(batch) == 0
    batch.fill(Range(out.buffer, 4, 4), 2)
    queue.submit(batch)
    assert queue.download(out).tolist() == [0, 2]
