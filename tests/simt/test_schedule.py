"""Lanes that wait for each other: each schedule, by both engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.simt import programs
from tests.simt.texts import head, whole

from bedplate.simt.api import LaunchFailed, Machine, verify

HEAD = (
    head("cells:u64 out:u64", 256)
    + """ld.param.u64 %rd1, [cells];
ld.param.u64 %rd2, [out];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd4, %rd2, %rd3;
"""
)
LOCK = """
SPIN:
atom.global.cas.b32 %r2, [%rd1], 0, 1;
setp.ne.s32 %p1, %r2, 0;
@%p1 bra SPIN;
ld.volatile.global.u32 %r3, [%rd1+4];
add.u32 %r3, %r3, 1;
st.volatile.global.u32 [%rd1+4], %r3;
membar.gl;
atom.global.exch.b32 %r4, [%rd1], 0;
"""
FLAG = """
setp.ge.u32 %p1, %r1, 32;
@%p1 bra SET;
WAIT:
ld.volatile.global.u32 %r2, [%rd1+4];
setp.eq.u32 %p2, %r2, 0;
@%p2 bra WAIT;
bra OUT;
SET:
st.volatile.global.u32 [%rd1+4], 7;
OUT:
"""
LATE = """
mov.u32 %r5, 0;
mov.u32 %r9, 0;
and.b32 %r6, %r1, 3;
LOOP:
setp.ne.u32 %p1, %r6, %r5;
@%p1 bra SKIP;
bar.warp.sync 0x0000FFFF;
SKIP:
add.u32 %r9, %r9, %r6;
add.u32 %r5, %r5, 1;
setp.lt.u32 %p2, %r5, 4;
@%p2 bra LOOP;
st.global.u32 [%rd4], %r9;
"""
SUM = """
mul.wide.u32 %rd5, %r1, 4;
mov.u64 %rd6, tile;
add.s64 %rd7, %rd6, %rd5;
st.volatile.shared.u32 [%rd7], %r1;
setp.ge.u32 %p1, %r1, 16;
@%p1 bra OUT;
ld.volatile.shared.u32 %r2, [%rd7+64];
ld.volatile.shared.u32 %r3, [%rd7];
add.u32 %r3, %r3, %r2;
st.volatile.shared.u32 [%rd7], %r3;
ld.volatile.shared.u32 %r2, [%rd7+32];
add.u32 %r3, %r3, %r2;
st.volatile.shared.u32 [%rd7], %r3;
ld.volatile.shared.u32 %r2, [%rd7+16];
add.u32 %r3, %r3, %r2;
st.volatile.shared.u32 [%rd7], %r3;
ld.volatile.shared.u32 %r2, [%rd7+8];
add.u32 %r3, %r3, %r2;
st.volatile.shared.u32 [%rd7], %r3;
ld.volatile.shared.u32 %r2, [%rd7+4];
add.u32 %r3, %r3, %r2;
st.global.u32 [%rd4], %r3;
OUT:
"""


def launch(body: str, threads: int, *, fast: bool = True, **options: Any) -> Any:
    """The cells and the outputs after a launch that both engines ran, and the fast one too."""
    with Machine(threads=1, memory=1 << 20, **options) as machine:
        cells = machine.array(np.zeros(4, np.uint32))
        out = machine.array(np.zeros(128, np.uint32))
        kernel = machine.load(whole(HEAD, body), "k.ptx")["k"]
        verify(kernel, 1, threads, (cells, out))
        once = cells.numpy().tolist(), out.numpy().tolist()
        if fast:
            cells.view()[...], out.view()[...] = 0, 0
            kernel[1, threads](cells, out)
            assert (cells.numpy().tolist(), out.numpy().tolist()) == once
        return once


@pytest.mark.parametrize("schedule", ["its", "adversarial"])
def test_a_lock_of_one_warp_goes_round(schedule: str) -> None:
    """All lanes take one lock and count; reported in vortex #62 and ventus-gpgpu #1."""
    assert launch(LOCK, 32, schedule=schedule)[0][:2] == [0, 32]


def test_a_lock_of_two_warps_goes_round() -> None:
    """The warp that holds it is not the one that spins."""
    assert launch(LOCK, 64)[0][:2] == [0, 64]


def test_ipdom_reports_the_lock() -> None:
    """The lanes that spin keep the one that holds the lock from running."""
    with pytest.raises(LaunchFailed, match="SIMT deadlock") as raised:
        launch(LOCK, 32, schedule="ipdom")
    assert raised.value.status == "deadlock"


@pytest.mark.parametrize("schedule", ["its", "ipdom", "adversarial"])
def test_a_flag_of_another_warp(schedule: str) -> None:
    """The warp that waits gives way to the one that writes."""
    assert launch(FLAG, 64, schedule=schedule)[0][1] == 7


def test_sync_waits_for_named_lanes() -> None:
    """Lanes reach one `bar.warp.sync` in different turns of a loop; lanes that end count out."""
    with pytest.raises(LaunchFailed, match=r"is not here.*bar.warp.sync"):
        launch(LATE, 32)
    # Only lanes of one turn are named: they meet though others pass by.
    same = LATE.replace("0x0000FFFF", "%r10").replace(
        "mov.u32 %r9, 0;", "mov.u32 %r9, 0;\nand.b32 %r11, %r1, 3;\nshl.b32 %r10, 0x11111111, %r11;"
    )
    assert launch(same, 32)[1][:8] == [0, 4, 8, 12, 0, 4, 8, 12]


def test_adversarial_shows_a_sum_without_sync() -> None:
    """A reduction that trusts lanes to go in step; reported in numba PR #6127."""
    right = sum(range(32))
    assert launch(SUM, 32)[1][0] == right
    # Run twice inside, by the reference and by the fast machine, with one result.
    assert launch(SUM, 32, fast=False, schedule="adversarial", seed=1)[1][0] != right


@pytest.mark.parametrize("schedule", ["ipdom", "adversarial"])
@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.soak) for n in range(2, 100))]
)
def test_results_do_not_depend_on_the_schedule(schedule: Any, seed: int) -> None:
    """Random control flow without communication, with barriers, in partial warps."""
    found = []
    text = programs.program(seed, blocks=4, barriers=seed % 3 == 2)
    for order in ("its", schedule):
        with Machine(threads=1, memory=1 << 20, schedule=order, seed=seed) as machine:
            out = machine.array(np.zeros(256, np.uint32))
            kernel = machine.load(text)["k"]
            if order == "its":
                kernel[2, 50](out, np.uint32(seed))
            else:
                verify(kernel, 2, 50, (out, np.uint32(seed)))
            found.append(out.numpy().tolist())
    assert found[0] == found[1]
