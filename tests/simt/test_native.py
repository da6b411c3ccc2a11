"""Kernels as native entries: arguments, windows, faults in words, blocks of every shape."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from bedplate.simt import abi, native
from bedplate.simt.nativeabi import CANCELLED, LAUNCH_FAULT, NativeFault, NativeLaunch

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
WHO = (
    HEAD
    + """
.global .align 4 .u32 calls = 7;
.visible .entry who(.param .u32 n, .param .u64 out, .param .u8 add)
{
    .reg .pred %p;
    .reg .b32 %r<20>;
    .reg .b16 %h;
    .reg .b64 %d<5>;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %tid.y;
    mov.u32 %r3, %tid.z;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %ntid.y;
    mad.lo.u32 %r6, %r3, %r5, %r2;
    mad.lo.u32 %r6, %r6, %r4, %r1;
    mov.u32 %r7, %ntid.z;
    mul.lo.u32 %r8, %r4, %r5;
    mul.lo.u32 %r8, %r8, %r7;
    mov.u32 %r9, %ctaid.x;
    mad.lo.u32 %r6, %r9, %r8, %r6;
    ld.param.u32 %r10, [n];
    setp.ge.u32 %p, %r6, %r10;
    @%p ret;
    ld.param.u64 %d1, [out];
    mul.wide.u32 %d2, %r6, 4;
    add.u64 %d1, %d1, %d2;
    ld.param.u8 %h, [add];
    cvt.u32.u8 %r11, %h;
    ld.global.u32 %r12, [calls];
    add.u32 %r11, %r11, %r12;
    add.u32 %r6, %r6, %r11;
    st.global.u32 [%d1], %r6;
    ret;
}
.visible .entry spin() .maxntid 64
{
AGAIN:
    bra AGAIN;
}
.visible .entry fixed() .reqntid 16, 2
{
    .shared .align 4 .b8 own[48];
    ret;
}
.visible .entry stop()
{
    trap;
}
"""
)


PLAIN = (
    HEAD
    + """
.visible .entry plain(.param .u64 table, .param .u32 turns)
{
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .b64 %d<7>;
    ld.param.u64 %d1, [table];
    ld.param.u32 %r1, [turns];
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %d2, %r2, 4;
    mov.u32 %r3, 0;
TURN:
    mul.wide.u32 %d3, %r3, 8;
    add.u64 %d3, %d1, %d3;
    ld.global.u64 %d4, [%d3];
    add.u64 %d4, %d4, %d2;
    st.global.u32 [%d4], %r2;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p, %r3, %r1;
    @%p bra TURN;
    ret;
}
.visible .entry direct(.param .u64 out)
{
    .reg .b32 %r1;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d2, %r1, 4;
    add.u64 %d3, %d1, %d2;
    st.global.u32 [%d3], %r1;
    ret;
}
"""
)
"""Without variables; each thread writes its number through every pointer of a table, or one."""


@pytest.fixture(scope="module")
def made() -> native.NativeKernels:
    """The kernels of this file."""
    return native.native_kernels(WHO, "who.ptx")


def launch(
    kernel: native.NativeKernel,
    parameters: bytes,
    windows: Sequence[tuple[int, int]],
    *,
    grid: int = 1,
    block: tuple[int, int, int] = (32, 1, 1),
    **more: Any,
) -> tuple[int, str, NativeFault]:
    """The status of a launch, and the words of its fault."""
    fault = NativeFault()
    table = (abi.Window * max(len(windows), 1))(*((a, size, a) for a, size in windows))
    data = ctypes.create_string_buffer(parameters, max(len(parameters), 1))
    given = NativeLaunch(
        parameters=ctypes.addressof(data),
        parameters_bytes=len(parameters),
        grid=(grid, 1, 1),
        block=block,
        fault=ctypes.addressof(fault),
        windows=ctypes.addressof(table),
        window_count=len(windows),
        **more,
    )
    status = abi.ENTRY(kernel.entry)(ctypes.addressof(given), 0, grid)
    return status, fault.text.decode(), fault


def who(n: int, out: int, add: int) -> bytes:
    """Its arguments, packed: 4 bytes, 4 of padding, 8, 1."""
    return n.to_bytes(8, "little") + out.to_bytes(8, "little") + bytes([add])


def place(array: np.ndarray[Any, Any]) -> int:
    """Where the bytes of an array are."""
    return int(array.ctypes.data)


@pytest.mark.parametrize(
    "block",
    [
        (32, 1, 1),
        (96, 1, 1),
        (1, 1, 1),
        (33, 1, 1),
        (8, 4, 1),
        (3, 5, 2),
        (1, 1, 64),
        (32, 2, 1),
        (64, 1, 3),
    ],
)
def test_blocks_of_every_shape(made: native.NativeKernels, block: tuple[int, int, int]) -> None:
    """Two codes for all of them; a module's variable is there beside the windows."""
    out, many = np.zeros(1000, "u4"), [np.zeros(4, "u4") for _ in range(100)]
    threads = block[0] * block[1] * block[2]
    grid = 900 // threads
    windows = sorted((place(array), array.nbytes) for array in (out, *many))
    for count in (windows, [(place(out), out.nbytes)]):
        out[:] = 0
        arguments = who(1000, place(out), 5)
        status, text, _ = launch(made.kernels["who"], arguments, count, grid=grid, block=block)
        assert (status, text) == (0, "")
        assert (out[: grid * threads] == np.arange(grid * threads) + 12).all()
        assert not out[grid * threads :].any()
    assert not any(array.any() for array in many)


def test_a_window_ends_where_it_ends(made: native.NativeKernels) -> None:
    """One byte less than an access needs is a fault that names the lane; nothing behind changes."""
    out = np.zeros(64, "u4")
    for short, lane in ((0, None), (1, 31), (4, 31), (5, 30), (128, 0)):
        out[:] = 0
        windows = [(place(out), 128 - short)]
        status, text, fault = launch(made.kernels["who"], who(32, place(out), 0), windows)
        if lane is None:
            assert status == 0
            continue
        assert status == LAUNCH_FAULT == fault.status
        address = place(out) + 4 * lane
        assert fault.value == address
        assert text == (
            f"address {address:#x} is in no allocation: kernel who, line {line('st.global.u32')} "
            f"st.global.u32, lane {lane}, thread ({lane}, 0, 0), block (0, 0, 0)"
        )
        assert not out[lane:].any()


@pytest.fixture(scope="module")
def loaded() -> native.NativeKernels:
    """The kernels without variables."""
    return native.native_kernels(PLAIN)


@pytest.fixture
def plain(loaded: native.NativeKernels) -> native.NativeKernel:
    """The one with a table."""
    return loaded.kernels["plain"]


def test_addresses_are_the_devices(loaded: native.NativeKernels) -> None:
    """A window's host may be anywhere; its end and alignment are looked at for the whole warp."""
    row = np.zeros(40, "u4")
    direct, base = loaded.kernels["direct"], 0x1000
    for at, size, status, lane in (
        (0, 128, 0, None),
        (32, 160, 0, None),
        (0, 127, LAUNCH_FAULT, 31),
        (4, 128, LAUNCH_FAULT, 31),
        (2, 160, LAUNCH_FAULT, 0),
    ):
        row[:] = 0
        fault = NativeFault()
        table = (abi.Window * 3)((0x10, 16, 0), (base, size, place(row)), (0x9000, 16, 0))
        parameters = ctypes.c_uint64(base + at)
        given = NativeLaunch(
            parameters=ctypes.addressof(parameters),
            parameters_bytes=8,
            grid=(1, 1, 1),
            block=(32, 1, 1),
            fault=ctypes.addressof(fault),
            windows=ctypes.addressof(table),
            window_count=3,
        )
        assert abi.ENTRY(direct.entry)(ctypes.addressof(given), 0, 1) == status
        if lane is None:
            assert row[at // 4 : at // 4 + 32].tolist() == list(range(32))
            continue
        assert fault.value == base + at + 4 * lane
        assert (b"not aligned" in fault.text) is bool(at % 4)


@pytest.mark.parametrize("many", [0, 7, 100])
def test_an_access_that_moves_between_windows(plain: native.NativeKernel, many: int) -> None:
    """One place in the code, and in every turn another window; each is checked to its end."""
    rows = [np.zeros(40, "u4") for _ in range(4)]
    others = [np.zeros(4, "u4") for _ in range(many)]
    order = [0, 1, 1, 0, 2, 3, 2, 0]
    table = np.array([place(rows[index]) for index in order], "u8")
    arguments = place(table).to_bytes(8, "little") + len(order).to_bytes(4, "little")
    every = [(place(array), array.nbytes) for array in (*rows, *others, table)]
    assert launch(plain, arguments, sorted(every))[:2] == (0, "")
    for row in rows:
        assert row.tolist() == [*range(32), *[0] * 8]
        row[:] = 0
    for short, lane in ((1, 31), (4, 31), (128, 0), (124, 1)):
        for row in rows:
            row[:] = 0
        cut = [(where, 128 - short if where == place(rows[3]) else size) for where, size in every]
        status, text, fault = launch(plain, arguments, sorted(cut))
        assert status == LAUNCH_FAULT
        assert fault.value == place(rows[3]) + 4 * lane
        assert f"lane {lane}, thread ({lane}, 0, 0)" in text
        assert not rows[3][lane:].any()
        assert all(row[:32].tolist() == list(range(32)) for row in rows[:3])
    for missing in (place(table), place(rows[2])):
        gone = [one for one in every if one[0] != missing]
        assert launch(plain, arguments, sorted(gone))[0] == LAUNCH_FAULT
    assert not any(array.any() for array in others)


def test_only_its_window_is_there(plain: native.NativeKernel) -> None:
    """The first window of a table that begins with it ends where it ends too."""
    row = np.zeros(40, "u4")
    table = np.array([place(row)], "u8")
    arguments = place(table).to_bytes(8, "little") + (1).to_bytes(4, "little")
    for short in (1, 4, 127):
        row[:] = 0
        windows = sorted([(place(row), 128 - short), (place(table), 8)])
        status, _, fault = launch(plain, arguments, windows)
        assert status == LAUNCH_FAULT
        assert fault.value == place(row) + (128 - short) // 4 * 4
    assert launch(plain, arguments, [])[0] == LAUNCH_FAULT
    windows = sorted([(place(row), 128), (place(table), 7)])
    assert launch(plain, arguments, windows)[0] == LAUNCH_FAULT


def test_a_misaligned_access_is_a_fault(plain: native.NativeKernel) -> None:
    """Also when its window is known."""
    row = np.zeros(40, "u4")
    table = np.array([place(row), place(row) + 2], "u8")
    arguments = place(table).to_bytes(8, "little") + (2).to_bytes(4, "little")
    windows = sorted([(place(row), row.nbytes), (place(table), 16)])
    status, text, _ = launch(plain, arguments, windows)
    assert status == LAUNCH_FAULT
    assert text.startswith(f"address {place(row) + 2:#x} is not aligned")
    assert row.tolist() == [*range(32), *[0] * 8]


def line(text: str) -> int:
    """The first line of the PTX with that instruction."""
    return next(n for n, found in enumerate(WHO.splitlines(), 1) if found.strip().startswith(text))


def test_a_fault_names_thread_and_block(made: native.NativeKernels) -> None:
    """In blocks of three dimensions too; the first to claim the record keeps it."""
    out = np.zeros(64, "u4")
    windows = [(place(out), 4 * 47)]
    arguments = who(64, place(out), 0)
    _, text, fault = launch(made.kernels["who"], arguments, windows, grid=2, block=(2, 4, 4))
    assert "lane 15, thread (1, 3, 1), block (1, 0, 0)" in text
    assert fault.block == 1
    kept = NativeFault(claimed=1, text=b"mine")
    given = NativeLaunch(grid=(1, 1, 1), block=(32, 1, 1), fault=ctypes.addressof(kept))
    entry = abi.ENTRY(made.kernels["stop"].entry)
    assert entry(ctypes.addressof(given), 0, 1) == LAUNCH_FAULT
    assert kept.text == b"mine"
    given.fault = None
    assert entry(ctypes.addressof(given), 0, 1) == LAUNCH_FAULT


def test_an_endless_kernel_ends_by_its_budget_or_the_flag(made: native.NativeKernels) -> None:
    """Without either it would not; the flag is no fault of the kernel."""
    status, text, _ = launch(made.kernels["spin"], b"", [], budget=1000)
    assert status == LAUNCH_FAULT
    assert text.startswith("the instruction budget is spent: kernel spin")
    flag = ctypes.c_uint32(1)
    status, text, _ = launch(made.kernels["spin"], b"", [], cancel=ctypes.addressof(flag))
    assert (status, text) == (CANCELLED, "")


def test_what_a_kernel_asks_of_launches(made: native.NativeKernels) -> None:
    """Sizes of arguments, limits of threads, a block of its own, its shared memory."""
    kernels = made.kernels
    assert (kernels["who"].arguments, kernels["who"].parameter_bytes) == ([4, 8, 1], 17)
    assert kernels["spin"].most_threads == 64
    assert kernels["who"].most_threads == native.MOST_THREADS
    assert kernels["fixed"].block == (16, 2, 1)
    assert kernels["fixed"].shared_bytes == 48
    assert kernels["who"].block is None


def test_arguments_are_packed_as_the_hal_packs_them() -> None:
    """Aligned to their size up to 8, a size that is no power of two to the one below."""
    assert native.packed([]) == ([], 0)
    assert native.packed([1, 2, 4, 8]) == ([0, 2, 4, 8], 16)
    assert native.packed([4, 12, 1, 3]) == ([0, 8, 20, 22], 25)
    assert native.packed([1, 16]) == ([0, 8], 24)
