"""What went wrong elsewhere, each case by both engines: the fast machine and the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.simt.conftest import KERNELS
from tests.simt.texts import head, whole

from bedplate.simt.api import (
    Kernel,
    LaunchFailed,
    Machine,
    Reference,
    Usage,
    check,
    occupancy,
    verify,
)
from bedplate.simt.interpreter.engine import Observer
from bedplate.simt.tally import Tally

START = """ld.param.u64 %rd1, [out];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;"""
LOCK = """SPIN:
atom.global.cas.b32 %r2, [%rd1], 0, 1;
setp.ne.s32 %p1, %r2, 0;
@%p1 bra SPIN;
ld.volatile.global.u32 %r3, [%rd1+4];
add.u32 %r3, %r3, 1;
st.volatile.global.u32 [%rd1+4], %r3;
membar.gl;
atom.global.exch.b32 %r4, [%rd1], 0;"""


def kernel(machine: Machine, *lines: str) -> Kernel:
    """A kernel with its thread's word of `out` at %rd3."""
    return machine.load(whole(head("out:u64", 8192), START, *lines), "k.ptx")["k"]


def both(made: Kernel, threads: int, words: int = 64, blocks: int = 1) -> list[int]:
    """The words after a launch, which are the same by each engine alone and by `verify`."""
    machine = made.machine
    arrays = [machine.array(np.zeros(words, np.uint32)) for _ in range(3)]
    made.launch(blocks, threads, (arrays[0],))
    Reference(made, blocks, threads, (arrays[1],)).run(Observer())
    verify(made, blocks, threads, (arrays[2],))
    found = [array.numpy().tolist() for array in arrays]
    assert found[0] == found[1] == found[2]
    return [int(word) for word in found[0]]


@pytest.fixture
def bugs(machine: Machine) -> Any:
    """The kernels with seeded bugs."""
    return machine.load((KERNELS / "bugs.sm_90a.ptx").read_text(), "bugs.ptx")


def test_funnel_shift_wraps(machine: Machine) -> None:
    """Rotating by 24. Reported in accel-sim/accel-sim-framework #298."""
    lines = "mov.b32 %r2, 0x11223344;", "shf.l.wrap.b32 %r3, %r2, %r2, 24;"
    made = kernel(machine, *lines, "st.global.u32 [%rd3], %r3;")
    assert both(made, 32)[:32] == [0x44112233] * 32


def test_untyped_registers_take_a_signed_multiply(machine: Machine) -> None:
    """-3 * 5 + 7 in `.b32` registers. Reported in gpuocelot PR #7."""
    lines = "mov.b32 %r2, -3;", "mad.lo.s32 %r3, %r2, 5, 7;"
    made = kernel(machine, *lines, "st.global.u32 [%rd3], %r3;")
    assert np.array(both(made, 32)[:32], np.uint32).view(np.int32).tolist() == [-8] * 32


def test_an_error_path_past_a_barrier_ends(bugs: Any) -> None:
    """20 threads, some jump past the barrier: it ends, and both faults are told.

    Reported in numba/numba #2655.
    """
    made = bugs["misses_the_barrier"]
    arrays = [bugs.machine.array(np.arange(128, dtype=np.int32)) for _ in range(3)]
    verify(made, 1, 20, arrays)
    kinds = {finding.kind for finding in check(made, 1, 20, arrays).findings}
    assert {"divergent-warp", "lanes"} <= kinds


def test_a_shuffle_of_two_lanes_then_of_all(machine: Machine) -> None:
    """Lanes 0 and 16 exchange in a branch, then all shift up. Reported in gunrock/gunrock #324."""
    lines = ["mov.u32 %r2, %r1;", "and.b32 %r3, %r1, 15;", "setp.ne.u32 %p1, %r3, 0;"]
    lines += ["@%p1 bra JOIN;", "shfl.sync.bfly.b32 %r2, %r2, 16, 31, 0x00010001;", "JOIN:"]
    lines += ["shfl.sync.up.b32 %r2, %r2, 1, 0, -1;", "st.global.u32 [%rd3], %r2;"]
    lane = [16, *range(1, 16), 0, *range(17, 32)]
    assert both(kernel(machine, *lines), 32)[:32] == [lane[max(n - 1, 0)] for n in range(32)]


@pytest.mark.parametrize("schedule", ["its", "adversarial"])
def test_a_spin_lock_of_one_warp(schedule: Any) -> None:
    """All lanes want it: each counts once. Reported in vortex #62 and ventus-gpgpu #1."""
    with Machine(threads=1, memory=1 << 20, schedule=schedule) as machine:
        assert both(kernel(machine, LOCK), 32)[:2] == [0, 32]


def test_a_spin_lock_under_one_stack() -> None:
    """A deadlock, reported by each engine in the same words."""
    said = []
    with Machine(threads=1, memory=1 << 20, schedule="ipdom") as machine:
        made = kernel(machine, LOCK)
        for start in (
            lambda values: made.launch(1, 32, values),
            lambda values: Reference(made, 1, 32, values).run(Observer()),
        ):
            with pytest.raises(LaunchFailed, match="SIMT deadlock") as raised:
                start((machine.array(np.zeros(4, np.uint32)),))
            said.append((str(raised.value), raised.value.status))
    assert said[0] == said[1]


@pytest.mark.parametrize(("stride", "wavefronts", "conflicts"), [(128, 32, 28), (16, 4, 0)])
def test_vectors_from_shared_memory(
    machine: Machine, stride: int, wavefronts: int, conflicts: int
) -> None:
    """`ld.shared.v4`, lanes 128 and 16 bytes apart. NVIDIA's developer forum, topic 359822."""
    lines = "mov.u32 %r2, tile;", f"mad.lo.u32 %r2, %r1, {stride}, %r2;"
    made = kernel(machine, *lines, "ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%r2];")
    out = machine.array(np.zeros(64, np.uint32))
    report = made.launch(1, 32, (out,), profile=True).report
    assert report is not None
    tally = Tally()
    Reference(made, 1, 32, (out,)).run(tally)
    fast = report.total
    slow = [(count.wavefronts, count.conflicts) for count in tally.counts.values()]
    assert (fast.wavefronts, fast.conflicts) == (wavefronts, conflicts)
    assert [sum(column) for column in zip(*slow, strict=True)] == [wavefronts, conflicts]


def test_seven_warps_of_92_registers() -> None:
    """Two blocks on sm_80; a rule, which no engine runs. Reported in kokkos PR #5739."""
    assert occupancy("sm_80", Usage(threads=224, registers=92)).blocks == 2


def test_a_cell_of_two_blocks(bugs: Any) -> None:
    """A barrier does not order blocks. Reported in jrprice/Oclgrind #159."""
    made = bugs["cell_of_two_blocks"]
    arrays = [bugs.machine.array(np.zeros(128, np.int32)) for _ in range(3)]
    verify(made, 2, 64, arrays)
    found = check(made, 2, 64, arrays).findings
    races = [one for one in found if one.kind == "blocks" and "read" in one.message]
    assert any("Barriers do not order blocks" in one.advice for one in races)


def test_a_sum_that_trusts_the_warp() -> None:
    """A race of lanes; some order of them gives a wrong sum, the same by both engines.

    Reported in numba/numba PR #6127.
    """
    text = (KERNELS / "bugs.sm_90a.ptx").read_text()
    sums = set()
    for seed in range(4):
        with Machine(threads=1, memory=1 << 20, schedule="adversarial", seed=seed) as machine:
            made = machine.load(text, "bugs.ptx")["warp_synchronous"]
            found = []
            for run in range(2):
                values = machine.array(np.arange(64, dtype=np.int32))
                out = machine.array(np.zeros(1, np.int32))
                if run:
                    Reference(made, 1, 64, (values, out, out)).run(Observer())
                else:
                    made[1, 64](values, out, out)
                found.append(int(out.numpy()[0]))
            assert found[0] == found[1]
            sums.add(found[0])
            if not seed:
                kinds = {one.kind for one in check(made, 1, 64, (values, out, out)).findings}
                assert "lanes" in kinds
    assert sums - {64 * 63 // 2}


def test_a_fused_tie_is_broken_by_the_addend(machine: Machine) -> None:
    """The product alone would round to even. Directed."""
    lines = "mov.b32 %f1, 0x3F800800;", "mov.b32 %f2, 0x21800000;"  # 2**-60
    made = kernel(machine, *lines, "fma.rn.f32 %f3, %f1, %f1, %f2;", "st.global.f32 [%rd3], %f3;")
    assert both(made, 32)[:32] == [0x3F801001] * 32
