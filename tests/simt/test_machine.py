"""Launches: faults, limits, memory, and a machine that stays usable."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from tests.simt.texts import head, whole

from bedplate.simt.api import (
    HostWindow,
    Kernel,
    LaunchFailed,
    LaunchInvalid,
    Machine,
    OutOfDeviceMemory,
)

HEAD = (
    head("p:u64")
    + """ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x;
"""
)


def kernel(machine: Machine, *lines: str) -> Kernel:
    """A kernel with the address in %rd1 and %tid.x in %r1."""
    return machine.load(whole(HEAD, *lines), "k.ptx")["k"]


def test_a_wild_address_is_a_fault_with_its_place(machine: Machine) -> None:
    """Lane, line and address; the machine runs on afterwards."""
    data = machine.array(np.zeros(32, np.uint32))
    lines = ["mul.wide.u32 %rd2, %r1, 4;", "add.s64 %rd3, %rd1, %rd2;", "setp.eq.u32 %p1, %r1, 5;"]
    lines += ["@%p1 mov.u64 %rd3, 64;", "st.global.u32 [%rd3], %r1;"]
    launched = kernel(machine, *lines)
    with pytest.raises(LaunchFailed, match=r"0x40 is in no allocation.*k.ptx:18 st") as raised:
        launched[2, 33](data)
    fault = raised.value.fault
    assert fault is not None
    assert (fault.kind, fault.address, fault.thread) == ("bounds", 64, (5, 0, 0))
    fine = kernel(machine, "st.global.u32 [%rd1], %r1;")
    fine[1, 32](data)
    assert data.numpy()[0] == 31  # of several lanes the highest stays


def test_misaligned(machine: Machine) -> None:
    """Every access is a multiple of its size."""
    data = machine.array(np.zeros(32, np.uint8))
    launched = kernel(machine, "ld.global.u32 %r2, [%rd1+2];")
    with pytest.raises(LaunchFailed, match="is not aligned"):
        launched[1, 1](data)


def test_an_index_that_wraps_within_a_warp(machine: Machine) -> None:
    """Lanes around 2**31 do not form a pattern in 64 bits; the slow way finds the places."""
    data = machine.array(np.zeros(64, np.uint32))
    lines = ["add.s32 %r2, %r1, 2147483632;", "mul.wide.s32 %rd2, %r2, 4;"]
    lines += ["sub.s64 %rd3, %rd1, 8589934528;", "setp.lt.s32 %p1, %r2, 0;"]
    lines += ["@%p1 bra OUT;", "add.s64 %rd4, %rd3, %rd2;", "st.global.u32 [%rd4], %r1;", "OUT:"]
    kernel(machine, *lines)[1, 32](data)
    assert data.numpy()[:17].tolist() == [*range(16), 0]


def test_trap_budget_and_cancel(machine: Machine) -> None:
    """Kernels that do not end by themselves."""
    data = machine.array(np.zeros(1, np.uint32))
    with pytest.raises(LaunchFailed, match=r"trapped.*thread \(3, 0, 0\)") as trapped:
        kernel(machine, "setp.eq.u32 %p1, %r1, 3;", "@%p1 trap;")[1, 8](data)
    assert trapped.value.status == "fault"
    endless = kernel(machine, "L:", "add.u32 %r1, %r1, 1;", "bra L;")
    with pytest.raises(LaunchFailed, match="budget") as spent:
        endless.launch(1, 32, (data,), budget=10_000)
    assert spent.value.status == "budget"
    stopper = threading.Thread(target=lambda: (time.sleep(0.05), _set(machine)))
    stopper.start()
    with pytest.raises(LaunchFailed) as stopped:
        endless[1, 32](data)
    stopper.join()
    assert stopped.value.status == "cancelled"
    machine.cancel.value = 0


def _set(machine: Machine) -> None:
    machine.cancel.value = 1


def test_a_barrier_that_some_threads_never_reach(machine: Machine) -> None:
    """Those that ended do not count; those that wait elsewhere make it a deadlock."""
    data = machine.array(np.zeros(1, np.uint32))
    ended = kernel(machine, "setp.lt.u32 %p1, %r1, 40;", "@%p1 ret;", "bar.sync 0;")
    ended[1, 96](data)
    lines = ["setp.lt.u32 %p1, %r1, 32;", "@%p1 bra A;", "bar.sync 1;", "bra B;"]
    parted = kernel(machine, *lines, "A:", "bar.sync 0;", "B:")
    with pytest.raises(LaunchFailed, match="never complete") as stuck:
        parted[1, 64](data)
    assert stuck.value.status == "deadlock"


def test_shared_memory_begins_with_junk(machine: Machine) -> None:
    """A kernel that relies on zeros fails every time."""
    data = machine.array(np.zeros(2, np.uint32))
    text = (
        HEAD
        + """.shared .align 4 .b8 tile[4];
mov.u32 %r3, %ctaid.x;
mul.wide.u32 %rd2, %r3, 4;
add.s64 %rd3, %rd1, %rd2;
ld.shared.u32 %r2, [tile];
st.global.u32 [%rd3], %r2;
st.shared.u32 [tile], %r1;
ret;
}"""
    )
    machine.load(text)["k"][2, 1](data)
    assert data.numpy().tolist() == [0xA5A5A5A5] * 2


def test_windows_of_the_caller(machine: Machine) -> None:
    """A buffer at a device address of the caller's choice, bounds checked."""
    buffer = bytearray(256)
    with Machine(threads=1, memory=1 << 20, windows=[HostWindow(0x10000, buffer)]) as own:
        lines = ["mul.wide.u32 %rd2, %r1, 8;", "add.s64 %rd3, %rd1, %rd2;"]
        launched = kernel(own, *lines, "cvt.u64.u32 %rd4, %r1;", "st.global.u64 [%rd3], %rd4;")
        launched[1, 32](0x10000)
        assert np.frombuffer(buffer, np.uint64).tolist() == list(range(32))
        with pytest.raises(LaunchFailed, match="0x10100 is in no allocation"):
            launched[1, 33](0x10000)


def test_many_windows_are_searched(machine: Machine) -> None:
    """Given in any order; each ends where it ends, above and below the machine's own memory."""
    bases = [0x10000, 0x20000, 0x20040, 0x7FFF_0000_0000, 0x1000, 0x30000, 0xF000_0000_0000_0000]
    buffers = {base: bytearray(64) for base in bases}
    windows = [HostWindow(base, memory) for base, memory in buffers.items()]
    with Machine(threads=1, memory=1 << 20, windows=windows) as own:
        own.array(np.zeros(4, np.uint32))
        launched = kernel(own, "st.global.u64 [%rd1], %rd1;")
        for base, buffer in buffers.items():
            launched[1, 1](base + 56)
            assert int.from_bytes(buffer[56:], "little") == base + 56
            for outside in (base - 8, base + 64):
                if outside in (0x20000 + 56, 0x20040):
                    continue
                with pytest.raises(LaunchFailed, match="in no allocation"):
                    launched[1, 1](outside)
        assert not any(any(buffer[:56]) for buffer in buffers.values())


@pytest.mark.parametrize(
    ("windows", "words"),
    [
        ([HostWindow(0x1000, b"bytes")], "0x1000 is over memory that cannot be written"),
        ([HostWindow(64, bytearray(65)), HostWindow(128, bytearray(1))], "0x80 overlaps the one"),
        ([HostWindow(0x7F00_0000_0000, bytearray(1))], "overlaps the one from 0x7f"),
        ([HostWindow(2**64 - 8, bytearray(9))], "past the last address"),
    ],
)
def test_windows_that_no_kernel_could_use(windows: list[HostWindow], words: str) -> None:
    """Read-only memory, and addresses that two of them would have."""
    with pytest.raises(LaunchInvalid, match=words):
        Machine(memory=1 << 20, windows=windows)


def test_threads_give_the_same(machine: Machine) -> None:
    """Blocks over two host threads; the fault of the lowest block is told."""
    with Machine(threads=2, memory=1 << 22) as two:
        data = two.array(np.zeros(64 * 128, np.uint32))
        lines = ["mov.u32 %r3, %ctaid.x;", "mad.lo.u32 %r4, %r3, 128, %r1;"]
        lines += ["mul.wide.u32 %rd2, %r4, 4;", "add.s64 %rd3, %rd1, %rd2;"]
        launched = kernel(two, *lines, "st.global.u32 [%rd3], %r4;")
        launched[64, 128](data)
        assert (data.numpy() == np.arange(64 * 128)).all()


def test_wrong_launches(machine: Machine) -> None:
    """Before anything runs, with the value and the limit."""
    data = machine.array(np.zeros(1, np.uint32))
    launched = kernel(machine)
    for grid, block, words in (
        (0, 1, "a grid of 0 is not between 1 and"),
        (1, 1025, "a block of 1025"),
        (1, (1024, 2), "2048 threads is more than k's 1024"),
        (1, (1, 1, 1, 1), "one to three sizes, not 4"),
    ):
        with pytest.raises(LaunchInvalid, match=words):
            launched[grid, block](data)
    with pytest.raises(LaunchInvalid, match="takes 1 arguments, not 0"):
        launched[1, 1]()
    with pytest.raises(LaunchInvalid, match="array of the host"):
        launched[1, 1](np.zeros(3))
    with pytest.raises(LaunchInvalid, match=r"\.u64, not float32"):
        launched[1, 1](np.float32(1))
    with pytest.raises(LaunchInvalid, match="dynamic shared memory"):
        launched[1, 1, 1 << 20](data)
    with pytest.raises(OutOfDeviceMemory, match="do not fit"):
        machine.empty(1 << 30, np.uint8)


def test_freed_memory_is_junk_and_reused(machine: Machine) -> None:
    """A use after free is seen, and a second free refused."""
    one = machine.array(np.zeros(64, np.uint32))
    view = one.view()
    one.free()
    assert (view == 0xA5A5A5A5).all()
    with pytest.raises(LaunchInvalid, match="is not an allocation"):
        one.free()
    assert machine.empty(64, np.uint32).address == one.address
    assert one.address % 256 == 0
