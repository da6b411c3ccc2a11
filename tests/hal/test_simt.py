"""The software GPU behind the HAL: no Python in a launch, bounds, faults, limits, modules."""

from __future__ import annotations

import ctypes
import gc
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bedplate.core.paths import native_library_dir
from bedplate.hal import abi, doctor, inprocess
from bedplate.hal.api import (
    U32,
    U64,
    Batch,
    Buffer,
    Device,
    DeviceError,
    InvalidArgument,
    Module,
    Queue,
    Tensor,
    Unsupported,
    conform_backend,
    open_device,
)
from bedplate.hal.native import ffi
from bedplate.hal.suite.registry import Tier
from bedplate.simt.api import MOST_SHARED, NativeFault, NativeLaunch, Window

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
KERNELS = (
    HEAD
    + """
.extern .shared .align 16 .b8 shared[];
.global .align 4 .u32 total = 40;
.visible .entry fill(.param .u8 add, .param .u64 out)
{
    .reg .b32 %r<6>;
    .reg .b16 %h;
    .reg .b64 %d<4>;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    ld.param.u8 %h, [add];
    cvt.u32.u8 %r5, %h;
    ld.param.u64 %d1, [out];
    mul.wide.u32 %d2, %r4, 4;
    add.u64 %d1, %d1, %d2;
    add.u32 %r4, %r4, %r5;
    st.global.u32 [%d1], %r4;
    ret;
}
.visible .entry sum(.param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    .reg .b64 %d;
    atom.global.add.u32 %r1, [total], 1;
    bar.sync 0;
    mov.u32 %r2, %tid.x;
    setp.ne.u32 %p, %r2, 0;
    @%p ret;
    ld.global.u32 %r3, [total];
    ld.param.u64 %d, [out];
    st.global.u32 [%d], %r3;
    ret;
}
.visible .entry spin(.param .u64 out)
{
    .reg .b64 %d;
    .reg .b32 %r;
    ld.param.u64 %d, [out];
AGAIN:
    ld.volatile.global.u32 %r, [%d];
    bra AGAIN;
}
.visible .entry narrow() .maxntid 64
{
    ret;
}
.visible .entry exact() .reqntid 8, 4
{
    .shared .align 4 .b8 own[1024];
    ret;
}
"""
)


@pytest.fixture
def device() -> Iterator[Device]:
    """The software GPU."""
    with open_device("simt", trust_claims=True) as opened:
        yield opened


@pytest.fixture
def module(device: Device) -> Module:
    """The kernels of this file."""
    return device.load_module("ptx", KERNELS.encode())


def address(tensor: Tensor) -> int:
    """The device's address of a tensor, which is the host's; its view is let go."""
    return int(tensor.view().ctypes.data)


def pinned(device: Device, host: NDArray[np.uint32]) -> Buffer:
    """A handle over the host's own memory."""
    out = ffi.new("uint64_t *")
    pointer = ffi.cast("void *", host.ctypes.data)
    device.check(device.api.mem.pin(device.handle, pointer, host.nbytes, out))
    return Buffer(device, int(out[0]), host.nbytes, 0)


def test_the_entry_has_the_hals_structs() -> None:
    """They are written again below the HAL; every field lies where the HAL has it."""
    for ours, theirs, names in (
        (NativeLaunch, "bp_native_launch", {}),
        (NativeFault, "bp_native_fault", {}),
        (Window, "bp_native_window", {"bytes": "size"}),
    ):
        size, offsets = abi.LAYOUT[theirs]
        assert ctypes.sizeof(ours) == size
        found = {name: getattr(ours, names.get(name, name)).offset for name in offsets}
        assert found == offsets
    assert NativeFault.text.size == abi.BP_FAULT_TEXT_BYTES


def test_a_launch_runs_no_python(device: Device, module: Module, queue: Queue) -> None:
    """While this thread holds the interpreter's lock, blocks run and finish."""
    out = device.upload(np.zeros(4096, "u4"))
    view = out.view()
    batch = Batch()
    batch.launch(module.kernel("fill"), (32,), [np.uint8(3), out], block=(128,))
    queue.submit(batch)
    held = ctypes.PyDLL(None)
    for _ in range(500):
        held.usleep(10_000)  # with the lock
        if view[-1]:
            break
    queue.synchronize()
    assert (view == np.arange(4096) + 3).all()


def test_memory_is_aligned_and_its_end_is_known(
    device: Device, module: Module, queue: Queue
) -> None:
    """The word behind an allocation is a fault with kernel, line, thread and lane."""
    several = [device.upload(np.zeros(size, "u4")) for size in (5, 64, 1 << 20, 100)]
    assert all(address(tensor) % 256 == 0 for tensor in several)
    batch = Batch()
    batch.launch(module.kernel("fill"), (2,), [np.uint8(0), several[3]], block=(64,))
    queue.submit(batch)
    number = 1 + KERNELS.splitlines().index("    st.global.u32 [%d1], %r4;")
    words = (
        f"address {address(several[3]) + 400:#x} is in no allocation: kernel fill, "
        rf"line {number} st.global.u32, lane 4, thread \(36, 0, 0\), block \(1, 0, 0\)"
    )
    with pytest.raises(DeviceError, match=words):
        queue.synchronize()
    assert not any(tensor.view().any() for tensor in several[:3])


def test_a_fault_poisons_what_waits_for_it(device: Device, module: Module) -> None:
    """A batch behind it does not run; the device stays usable."""
    out = device.upload(np.zeros(64, "u4"))
    with device.queue() as queue, device.queue() as other:
        bad, good = Batch(), Batch()
        bad.launch(module.kernel("fill"), (1,), [np.uint8(0), U64(8)], block=(32,))
        good.launch(module.kernel("fill"), (1,), [np.uint8(1), out], block=(32,))
        after = device.timeline()
        queue.submit(bad, signal=[(after, 1)])
        other.submit(good, wait=[(after, 1)])
        for one in (queue, other):
            with pytest.raises(DeviceError, match="address 0x8 is in no allocation"):
                one.synchronize()
        assert not out.view().any()
    with device.queue() as queue:
        queue.submit(good)
        assert queue.download(out)[:32].tolist() == list(range(1, 33))


def test_released_memory_is_no_ones(device: Device, module: Module, queue: Queue) -> None:
    """Its address faults from then on, and what others have does not."""
    gone, kept = (device.allocate(1 << 21) for _ in range(2))
    where = int(gone.view("u4").ctypes.data)
    gone.release()
    gc.collect()
    batch = Batch()
    batch.launch(module.kernel("fill"), (1,), [np.uint8(0), kept], block=(32,))
    batch.launch(module.kernel("fill"), (1,), [np.uint8(0), U64(where)], block=(32,))
    queue.submit(batch)
    with pytest.raises(DeviceError, match=r"command 1 .*in no allocation"):
        queue.synchronize()


def test_the_callers_memory_is_a_window_while_it_is_pinned(
    device: Device, module: Module, queue: Queue
) -> None:
    """Two handles over the same bytes are one window, also when one of them goes."""
    host = np.zeros(256, "u4")
    whole = pinned(device, host)
    part = pinned(device, host[64:128])
    for turn in range(2):
        batch = Batch()
        arguments = [np.uint8(turn), U64(host.ctypes.data)]
        batch.launch(module.kernel("fill"), (2,), arguments, block=(128,))
        queue.submit(batch)
        queue.synchronize()
        assert (host == np.arange(256) + turn).all()
        part.release()
    whole.release()
    queue.submit(batch)
    with pytest.raises(DeviceError, match="in no allocation"):
        queue.synchronize()


def test_a_modules_variables_are_its_own(device: Device, queue: Queue) -> None:
    """Each load has them anew, with their initial values."""
    out = device.upload(np.zeros(1, "u4"))
    for _ in range(2):
        module = device.load_module("ptx", KERNELS.encode())
        for wanted in (104, 168):
            batch = Batch()
            batch.launch(module.kernel("sum"), (1,), [out], block=(64,))
            queue.submit(batch)
            assert queue.download(out).tolist() == [wanted]


def test_an_endless_kernel_ends_with_its_queue(device: Device, module: Module) -> None:
    """Destroying the queue sets the flag that kernels look at."""
    out = device.upload(np.zeros(1, "u4"))
    with device.queue() as queue:
        batch = Batch()
        batch.launch(module.kernel("spin"), (4,), [out], block=(32,))
        queue.submit(batch)
    assert out.view()[0] == 0


def test_launches_that_do_not_fit_are_refused(device: Device, module: Module, queue: Queue) -> None:
    """When they are submitted, with the number and the limit."""
    out = device.upload(np.zeros(1, "u4"))
    refused = [
        ("fill", [np.uint8(1)], (32,), 0, "1 arguments of 1 bytes"),
        ("fill", [U32(1), U32(0)], (32,), 0, "2 arguments of 8 bytes together"),
        ("fill", [np.uint8(1), out, np.uint8(1)], (32,), 0, "takes 2 of 16"),
        ("narrow", [], (65,), 0, "at most 64"),
        ("exact", [], (4, 8), 0, "built for 8 x 4 x 1"),
        ("exact", [], (8, 4), MOST_SHARED - 1020, "1024 of the kernel's own"),
        ("fill", [np.uint8(1), out], (32,), MOST_SHARED + 1, f"at most {MOST_SHARED}"),
        ("fill", [np.uint8(1), out], (1025,), 0, "at most 1024"),
    ]
    for name, arguments, block, shared, words in refused:
        batch = Batch()
        batch.launch(module.kernel(name), (1,), arguments, block=block, shared_bytes=shared)
        with pytest.raises(InvalidArgument, match=words):
            queue.submit(batch)
    batch = Batch()
    batch.launch(module.kernel("narrow"), (1,), block=(64,))
    batch.launch(module.kernel("exact"), (1,), block=(8, 4), shared_bytes=MOST_SHARED - 1024)
    queue.submit(batch)
    queue.synchronize()


def test_what_is_no_ptx_of_ours_is_refused(device: Device) -> None:
    """With its line; an instruction that the machine lacks is unsupported."""
    with pytest.raises(InvalidArgument, match=r"<ptx>:4:\d+"):
        device.load_module("ptx", (HEAD + "nonsense").encode())
    with pytest.raises(InvalidArgument, match="no text"):
        device.load_module("ptx", b"\xff\xfe")
    body = ".visible .entry k() { .reg .f32 %f; lg2.approx.f32 %f, %f; ret; }"
    with pytest.raises(Unsupported, match="lg2"):
        device.load_module("ptx", (HEAD + body).encode())
    with pytest.raises(Unsupported, match="takes PTX"):
        device.load_native_module(native_library_dir() / "examples" / "arithmetic.so")


def test_it_is_listed_and_made_when_asked() -> None:
    """Nobody registers it; its device is certified like any other."""
    (found,) = [one for one in doctor.listing() if one.name == "simt"]
    assert found.reason is None
    assert [one["name"] for one in found.devices] == ["software GPU"]
    assert {one.backend: one.verdict for one in doctor.examine()}["simt"] == "taken"
    assert inprocess.registered("simt")
    assert not any(origin.startswith("simt=") for origin in inprocess.origins())


def test_a_c_host_without_python_gets_a_reason() -> None:
    """The file answers, and has no devices."""
    folder = native_library_dir()
    program = [folder / "bedplate_hal_probe", folder / "hal.d" / "bedplate_hal_simt.so"]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert "status=-4" in done.stdout
    assert "no machine is registered for simt in this process" in done.stdout


@pytest.mark.parametrize(
    "tier",
    [
        pytest.param("quick", marks=pytest.mark.timeout(300)),
        pytest.param("full", marks=[pytest.mark.soak, pytest.mark.timeout(900)]),
    ],
)
def test_it_conforms(tier: Tier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite, in workers that make the machine themselves."""
    monkeypatch.setenv("BEDPLATE_DATA_DIR", str(tmp_path))
    (report,) = conform_backend("simt", tier=tier)
    assert report.problems == []
    assert report.exit_code == 0
    wanted = {"module_ptx", "host_visible", "device_address", "timestamp", "dynamic_shared"}
    assert wanted | {"pin_host", "capture"} <= set(report.capabilities("certified"))
