"""Both engines write the same registers in the same lanes, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from tests.simt import forms, programs
from tests.simt.conftest import KERNELS

from bedplate.simt.api import EnginesDiffer, Machine, verify
from bedplate.simt.lowering.base import LANEWISE

PIECE = 24
"""Instructions of one kernel: LLVM's time grows faster than their number."""
ALL = list(forms.lanewise())
STARTS = [
    pytest.param(start, marks=[pytest.mark.soak] if start // PIECE % 4 else [])
    for start in range(0, len(ALL), PIECE)
]
"""A quarter of the pieces run each time; `verify` of every form is a campaign of its own too."""


@pytest.mark.parametrize("start", STARTS)
def test_every_lanewise_form(machine: Machine, start: int) -> None:
    """Hard operands, four blocks of 32 lanes each."""
    text, operands = forms.kernel(ALL[start : start + PIECE])
    rows = machine.array(operands)
    outcome = verify(machine.load(text, "forms.ptx")["k"], 4, 32, (rows,))
    assert outcome.cut == 0
    assert outcome.registers > 4 * PIECE / 2


@pytest.mark.parametrize(
    "seed", [*range(5), *(pytest.param(n, marks=pytest.mark.soak) for n in range(5, 400))]
)
def test_random_control_flow(machine: Machine, seed: int) -> None:
    """Warps that split in every way, also around barriers, in full and partial warps."""
    text = programs.program(seed, barriers=seed % 3 == 2)
    out = machine.array(np.zeros(256, np.uint32))
    threads = (64, 50)[seed % 2]
    assert verify(machine.load(text)["k"], 2, threads, (out, np.uint32(seed))).registers


def test_first_kernels(machine: Machine) -> None:
    """Real compiler output: saxpy, its loop, n-body by tiles, matmul by tiles."""
    loaded = machine.load((KERNELS / "first.sm_90a.ptx").read_text())
    size = 200
    x = machine.array(np.arange(size, dtype=np.float32))
    y = machine.array(np.ones(size, np.float32))
    verify(loaded["saxpy"], 2, 128, (np.float32(2), x, y, np.uint32(size)))
    assert (y.numpy() == 2 * np.arange(size, dtype=np.float32) + 1).all()
    loop = (np.float32(0.5), x, y, np.uint32(size), np.int32(7))
    verify(loaded["saxpy_loop"], 2, 100, loop)
    tiles = np.random.default_rng(1).random((2, 16, 16), np.float32)
    a, b, c = machine.array(tiles[0]), machine.array(tiles[1]), machine.empty((16, 16), np.float32)
    verify(loaded["matmul"], 1, (16, 16), (a, b, c, np.int32(16)))
    assert np.allclose(c.numpy(), tiles[0] @ tiles[1], rtol=1e-5)
    bodies = machine.array(np.random.default_rng(2).random((128, 4), np.float32))
    out = machine.empty((128, 4), np.float32)
    verify(loaded["nbody"], 1, 32, (bodies, out, np.int32(32)))


def test_a_wrong_lowering_is_found(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison names register, lane, line and both values."""
    monkeypatch.setitem(LANEWISE, ("integer", "xor"), lambda e, made, a, b: e.builder.or_(a, b))
    text = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u32 n) {
.reg .b32 %r<3>;
mov.u32 %r1, %tid.x;
xor.b32 %r2, %r1, 3;
ret;
}"""
    with pytest.raises(EnginesDiffer, match=r"lane 1: %r2 is 0x2 .* 0x3 .*:7 xor.b32"):
        verify(machine.load(text)["k"], 1, 32, (np.uint32(1),))


def test_payloads_survive_moves_but_not_arithmetic(machine: Machine) -> None:
    """A NaN's bits are kept by loads, moves and stores; a sum's NaN is the canonical one.

    The loop runs for a part of the lanes, so one register holds both kinds at its end.
    """
    text = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data) {
.reg .pred %p<3>;
.reg .b32 %r<4>;
.reg .f32 %f<3>;
.reg .b64 %rd<4>;
ld.param.u64 %rd1, [data];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
ld.global.f32 %f1, [%rd3];
mov.u32 %r2, 0;
setp.ge.u32 %p1, %r1, 16;
@%p1 bra DONE;
LOOP:
add.f32 %f2, %f1, %f1;
mov.f32 %f1, %f2;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p2, %r2, %r1;
@%p2 bra LOOP;
DONE:
st.global.f32 [%rd3], %f1;
ret;
}"""
    bits = np.full(32, 0xFFC12345, np.uint32)
    data = machine.array(bits)
    machine.load(text)["k"][1, 32](data)
    assert [hex(v) for v in data.numpy()] == ["0x7fffffff"] * 16 + ["0xffc12345"] * 16
    again = machine.array(bits)
    verify(machine.load(text)["k"], 1, 32, (again,))
