"""Atomics: both engines, and sums that every order gives."""

from __future__ import annotations

import numpy as np
import pytest
from tests.simt.conftest import sliced
from tests.simt.texts import head, whole

from bedplate.simt.api import Machine, verify

HEAD = (
    head("cell:u64 out:u64", 8)
    + """ld.param.u64 %rd1, [cell];
ld.param.u64 %rd2, [out];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, 8;
add.s64 %rd4, %rd2, %rd3;
mul.lo.u32 %r2, %r1, 2654435761;
cvt.u64.u32 %rd6, %r2;
mul.lo.u64 %rd6, %rd6, 6364136223846793005;
cvt.rn.f32.u32 %f1, %r1;
cvt.rn.f64.u32 %d1, %r2;
"""
)
SOURCES = {"32": "%r2", "64": "%rd6", "f32": "%f1", "f64": "%d1"}
RESULTS = {"32": "%r3", "64": "%rd7", "f32": "%f2", "f64": "%d2"}
CASES = [
    *(f"add.{kind}" for kind in ("u32", "s32", "u64", "f32", "f64")),
    *(f"{op}.{kind}" for op in ("min", "max") for kind in ("u32", "s32", "u64", "s64")),
    *(f"{op}.b{bits}" for op in ("and", "or", "xor", "exch", "cas") for bits in (32, 64)),
    "inc.u32",
    "dec.u32",
]


def operation(name: str, space: str, address: str) -> list[str]:
    """The atomic, a reduction without a result where there is one, and the old value kept."""
    kind = name.partition(".")[2]
    key = kind if kind in SOURCES else kind[1:]
    source, result = SOURCES[key], RESULTS[key]
    operands = f"{source}, {source}" if name.startswith("cas") else source
    lines = [f"atom.{space}.{name} {result}, [{address}], {operands};"]
    if not name.startswith(("cas", "exch")):
        lines.append(f"@!%p1 red.relaxed.gpu.{space}.{name} [{address}], {source};")
    return [*lines, f"st.global.b{key.removeprefix('f')} [%rd4], {result};"]


@pytest.mark.parametrize("name", sliced(CASES, 2))
def test_both_engines(machine: Machine, name: str) -> None:
    """In global memory, and in shared memory from its junk, by a part of the lanes."""
    lines = ["setp.lt.u32 %p1, %r1, 40;", *operation(name, "global", "%rd1")]
    lines += ["add.s64 %rd4, %rd4, 1024;", *operation(name, "shared", "tile")]
    text = whole(HEAD, *lines)
    cell = machine.array(np.array([5], np.uint64))
    out = machine.array(np.zeros(256, np.uint64))
    verify(machine.load(text, "k.ptx")["k"], 2, 64, (cell, out))


def test_sums_of_many_blocks() -> None:
    """Two host threads add to one cell and none is lost; float sums run in order."""
    text = whole(HEAD, "red.global.add.u32 [%rd1], 1;")
    floats = text.replace("add.u32 [%rd1], 1", "add.f32 [%rd1], 0f3F800000")
    with Machine(threads=2, memory=1 << 20) as machine:
        cell = machine.array(np.zeros(1, np.uint64))
        out = machine.array(np.zeros(256, np.uint64))
        machine.load(text)["k"][512, 128](cell, out)
        assert cell.numpy()[0] == 512 * 128
        assert not machine.load(text)["k"].ordered
        assert machine.load(floats)["k"].ordered


def test_subnormal_sums_are_flushed_in_global_memory(machine: Machine) -> None:
    """As the ISA says of atom.add.f32; in shared memory they are kept."""
    lines = ["setp.eq.u32 %p1, %r1, 0;", "mov.f32 %f3, 0f00000003;", "mov.u32 %r4, 5;"]
    lines += ["st.shared.u32 [tile], %r4;", "atom.shared.add.f32 %f2, [tile], %f3;"]
    lines += ["ld.shared.u32 %r5, [tile];", "st.global.u32 [%rd2], %r5;"]
    lines += ["red.global.add.f32 [%rd1], %f3;"]
    cell = machine.array(np.array([5], np.uint64))
    out = machine.array(np.zeros(256, np.uint64))
    machine.load(whole(HEAD, *lines))["k"][1, 1](cell, out)
    assert cell.numpy()[0] == 0
    assert out.numpy()[0] == 8
