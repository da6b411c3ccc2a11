"""Matrix operations and copies: both engines, and numpy's products."""

from __future__ import annotations

import numpy as np
import pytest
from tests.simt.texts import head, whole

from bedplate.simt.api import LaunchFailed, Machine, PtxInvalid, verify

HEAD = (
    head("a:u64 b:u64 c:u64", 1024)
    + """ld.param.u64 %rd1, [a];
ld.param.u64 %rd2, [b];
ld.param.u64 %rd3, [c];
mov.u32 %r1, %tid.x;
"""
)
COPY = """
mul.wide.u32 %rd4, %r1, 16;
add.s64 %rd5, %rd1, %rd4;
shl.b32 %r2, %r1, 4;
mov.u32 %r3, tile;
add.u32 %r4, %r3, %r2;
cp.async.cg.shared.global [%r4], [%rd5], 16;
cp.async.commit_group;
cp.async.wait_group 0;
bar.sync 0;
"""
FRAGMENTS = """
and.b32 %r5, %r1, 15;
shr.u32 %r6, %r1, 4;
mad.lo.u32 %r7, %r5, 32, %r3;
mad.lo.u32 %r7, %r6, 16, %r7;
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r7];
and.b32 %r8, %r1, 15;
mad.lo.u32 %r9, %r8, 16, %r3;
ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r14, %r15}, [%r9+512];
"""
STORE = """
shr.u32 %r20, %r1, 2;
and.b32 %r21, %r1, 3;
mad.lo.u32 %r22, %r20, 8, 0;
mad.lo.u32 %r22, %r21, 2, %r22;
mul.wide.u32 %rd6, %r22, 4;
add.s64 %rd7, %rd3, %rd6;
st.global.v2.f32 [%rd7], {%f1, %f2};
st.global.v2.f32 [%rd7+256], {%f3, %f4};
"""
MMA = """
mov.f32 %f5, 0f3F000000;
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4},
 {%r10, %r11, %r12, %r13}, {%r14, %r15}, {%f5, %f5, %f5, %f5};
"""
WMMA = """
wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r2,%r3,%r4,%r5,%r6,%r7,%r8,%r9}, [%rd1], 16;
mov.u32 %r30, 24;
wmma.load.b.sync.aligned.col.m16n16k16.global.f16
 {%r10,%r11,%r12,%r13,%r14,%r15,%r16,%r17}, [%rd2], %r30;
mov.f32 %f9, 0f00000000;
wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8},
 {%r2,%r3,%r4,%r5,%r6,%r7,%r8,%r9}, {%r10,%r11,%r12,%r13,%r14,%r15,%r16,%r17},
 {%f9,%f9,%f9,%f9,%f9,%f9,%f9,%f9};
wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd3], {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, 16;
"""


def program(*parts: str) -> str:
    """A kernel of these parts."""
    return whole(HEAD, *parts)


def bounded(got: np.ndarray, a: np.ndarray, b: np.ndarray, c: float = 0.0) -> None:
    """One rounding to f32 of a sum in f64, whose own error is far below."""
    exact = a.astype(np.float64) @ b.astype(np.float64) + c
    size = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64) + abs(c)
    assert (np.abs(got - exact) <= np.abs(exact) * 2.0**-24 + size * 2.0**-48).all()


def test_multiply_from_shared_memory(machine: Machine) -> None:
    """cp.async, ldmatrix in both directions, mma; a is 16 by 16, b lies as 16 rows of 8."""
    draw = np.random.default_rng(3)
    a = draw.standard_normal((16, 16)).astype(np.float16)
    b = draw.standard_normal((16, 8)).astype(np.float16)
    both = machine.array(np.concatenate([a.ravel(), b.ravel(), np.zeros(128, np.float16)]))
    c = machine.array(np.zeros((16, 8), np.float32))
    kernel = machine.load(program(COPY + COPY_MORE, FRAGMENTS, MMA, STORE), "k.ptx")["k"]
    verify(kernel, 1, 32, (both, both, c))
    bounded(c.numpy(), a, b, 0.5)


COPY_MORE = """
cp.async.cg.shared.global [%r4+512], [%rd5+512], 16;
cp.async.wait_all;
bar.sync 0;
"""


def test_warp_matrix(machine: Machine) -> None:
    """Load by rows and by columns, with a stride in a register, multiply, store."""
    draw = np.random.default_rng(4)
    a = draw.standard_normal((16, 16)).astype(np.float16)
    b = draw.standard_normal((16, 24)).astype(np.float16)  # columns of b, padded
    c = machine.array(np.zeros((16, 16), np.float32))
    kernel = machine.load(program(WMMA), "k.ptx")["k"]
    verify(kernel, 1, 32, (machine.array(a), machine.array(b), c))
    bounded(c.numpy(), a, b[:, :16].T)


def test_copies_of_each_size(machine: Machine) -> None:
    """4, 8 and 16 bytes a lane; a size that is none of them is refused with its place."""
    lines = [COPY.replace(".cg", ".ca")]
    lines += ["cp.async.ca.shared.global [%r4], [%rd5], 8;"]
    lines += ["cp.async.ca.shared.global [%r4+4], [%rd5+8], 4;", "bar.sync 0;"]
    lines += ["ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r4];", "add.s64 %rd6, %rd3, %rd4;"]
    lines += ["st.global.v4.u32 [%rd6], {%r5, %r6, %r7, %r8};"]
    words = np.arange(128, dtype=np.uint32)
    x, c = machine.array(words), machine.array(np.zeros(128, np.uint32))
    verify(machine.load(program(*lines))["k"], 1, 32, (x, x, c))
    expected = words.reshape(32, 4)
    expected[:, 1] = expected[:, 2]
    assert (c.numpy().reshape(32, 4) == expected).all()
    wrong = program("cp.async.cg.shared.global [%r4], [%rd5], 8;")
    with pytest.raises(PtxInvalid, match="constant number of bytes, 16"):
        machine.load(wrong)


def test_a_row_that_is_not_aligned(machine: Machine) -> None:
    """ldmatrix wants rows at multiples of 16 bytes."""
    lines = ["mov.u32 %r7, tile;"]
    lines += ["ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r2, %r3, %r4, %r5}, [%r7+4];"]
    x = machine.array(np.zeros(4, np.uint32))
    with pytest.raises(LaunchFailed, match="not aligned"):
        verify(machine.load(program(*lines))["k"], 1, 32, (x, x, x))


def test_powers_of_two(machine: Machine) -> None:
    """ex2.approx within one rounding of 2**x, over all of f32's range; both engines alike."""
    lines = ["mul.wide.u32 %rd4, %r1, 4;", "add.s64 %rd5, %rd1, %rd4;"]
    lines += ["ld.global.f32 %f1, [%rd5];", "ex2.approx.f32 %f2, %f1;"]
    lines += ["add.s64 %rd6, %rd3, %rd4;", "st.global.f32 [%rd6], %f2;"]
    lines += ["ex2.approx.ftz.f32 %f3, %f1;", "st.global.f32 [%rd6+4096], %f3;"]
    x = np.linspace(-152, 130, 1024, dtype=np.float32)
    data, out = machine.array(x), machine.array(np.zeros(2048, np.float32))
    kernel = machine.load(program(*lines))["k"]
    verify(kernel, 2, 512, (data, data, out))
    kernel[1, 1024](data, data, out)
    with np.errstate(over="ignore"):
        exact = np.exp2(x.astype(np.float64))
        nearest = exact.astype(np.float32)
    got = out.numpy()
    assert (np.abs(got[:1024].view(np.int32) - nearest.view(np.int32)) <= 1).all()
    normal = exact >= 2.0**-126
    assert (got[1024:][normal] == got[:1024][normal]).all()
    assert not got[1024:][~normal].any()


@pytest.mark.parametrize("schedule", ["its", "ipdom", "adversarial"])
def test_barriers_that_reduce(schedule: str) -> None:
    """Counted over all warps, by every schedule, twice in a row."""
    lines = ["and.b32 %r2, %r1, 3;", "setp.eq.u32 %p1, %r2, 1;"]
    lines += ["bar.red.popc.u32 %r3, 0, %p1;", "bar.red.popc.u32 %r4, 0, !%p1;"]
    lines += ["setp.ge.u32 %p2, %r1, 1;", "bar.red.and.pred %p3, 0, %p2;"]
    lines += ["bar.red.or.pred %p4, 0, %p1;", "selp.u32 %r5, 1000, 0, %p3;"]
    lines += ["selp.u32 %r6, 2000, 0, %p4;", "shl.b32 %r4, %r4, 16;", "add.u32 %r3, %r3, %r4;"]
    lines += ["add.u32 %r3, %r3, %r5;", "add.u32 %r3, %r3, %r6;", "mul.wide.u32 %rd4, %r1, 4;"]
    lines += ["add.s64 %rd5, %rd3, %rd4;", "st.global.u32 [%rd5], %r3;"]
    with Machine(threads=1, memory=1 << 20, schedule=schedule) as machine:  # type: ignore[arg-type]
        out = machine.array(np.zeros(100, np.uint32))
        verify(machine.load(program(*lines))["k"], 1, 100, (out, out, out))
        assert set(out.numpy().tolist()) == {25 + (75 << 16) + 2000}
