"""What a kernel may do at its edges: code that nobody reaches, memory that nobody wrote."""

from __future__ import annotations

import numpy as np
import pytest

from bedplate.simt.api import LaunchFailed, Machine, PtxInvalid, verify

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


def test_code_behind_a_trap_is_reached_by_nobody(machine: Machine) -> None:
    """As nvcc writes `__trap(); *p = 2;`: what is before it is done, and the launch fails."""
    text = HEAD + (
        ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %d<2>;\n.reg .b32 %r<3>;\n"
        "ld.param.u64 %d1, [p];\nmov.u32 %r1, 1;\nst.global.u32 [%d1], %r1;\ntrap;\n"
        "mov.u32 %r2, 2;\nst.global.u32 [%d1], %r2;\nret;\n}\n"
    )
    out = machine.array(np.zeros(1, np.uint32))
    with pytest.raises(LaunchFailed, match="trap"):
        machine.load(text)["k"][1, 1](out)
    assert out.numpy()[0] == 1


@pytest.mark.parametrize(
    ("load", "size"), [("v4.u64", 4), ("v2.u32", 4), ("u64", 4), ("v4.b32", 12), ("b16", 1)]
)
def test_a_load_past_the_end_of_a_parameter_is_refused(
    machine: Machine, load: str, size: int
) -> None:
    """All of what it takes counts, not its first byte."""
    kind = load.rpartition(".")[2]
    register = {"64": "%d", "32": "%r", "16": "%h"}[kind[1:]]
    count = int(load[1]) if load[0] == "v" else 1
    names = ", ".join(f"{register}{n}" for n in range(count))
    text = HEAD + (
        f".visible .entry k(.param .b8 z[{size}])\n{{\n.reg .b64 %d<4>;\n.reg .b32 %r<4>;\n"
        f".reg .b16 %h<4>;\nld.param.{load} {'{' + names + '}' if count > 1 else names}, [z];\n"
        "ret;\n}\n"
    )
    with pytest.raises(PtxInvalid, match="reads beyond the parameter z"):
        machine.load(text)


def test_local_memory_begins_with_the_same_junk(machine: Machine) -> None:
    """In both engines, in each block and each run: never what the host left there."""
    text = HEAD + (
        ".visible .entry k(.param .u64 p)\n{\n.local .align 8 .b8 l[16];\n.reg .b64 %d<5>;\n"
        ".reg .b32 %r<3>;\nld.param.u64 %d1, [p];\nmov.u64 %d2, l;\nld.local.u64 %d3, [%d2+8];\n"
        "mov.u32 %r1, %ctaid.x;\nmul.wide.u32 %d4, %r1, 8;\nadd.u64 %d1, %d1, %d4;\n"
        "st.global.u64 [%d1], %d3;\nst.local.u64 [%d2+8], %d1;\nret;\n}\n"
    )
    out = machine.array(np.zeros(4, np.uint64))
    verify(machine.load(text)["k"], 4, 1, (out,))
    assert set(out.numpy().tolist()) == {0xA5A5A5A5A5A5A5A5}


def words(machine: Machine, text: str, kernel: str = "k", count: int = 2) -> list[int]:
    """What a kernel of one thread leaves in its only argument; both engines agree."""
    out = machine.array(np.zeros(count, np.uint32))
    verify(machine.load(HEAD + text)[kernel], 1, 1, (out,))
    return [int(word) for word in out.numpy()]


@pytest.mark.parametrize("space", ["local", "shared"])
def test_a_functions_variable_is_not_its_callers(machine: Machine, space: str) -> None:
    """Both are called `buf`, the callee's is larger: the caller's value is still there."""
    text = (
        f".func f()\n{{\n.{space} .align 4 .b8 buf[64];\n.reg .b32 %r<2>;\nmov.u32 %r1, 31;\n"
        f"st.{space}.u32 [buf], %r1;\nst.{space}.u32 [buf+60], %r1;\nret;\n}}\n"
        f".visible .entry k(.param .u64 p)\n{{\n.{space} .align 4 .b8 buf[16];\n"
        ".reg .b32 %r<4>;\n.reg .b64 %d<2>;\nld.param.u64 %d1, [p];\nmov.u32 %r1, 77;\n"
        f"st.{space}.u32 [buf], %r1;\ncall.uni f;\nld.{space}.u32 %r2, [buf];\n"
        "st.global.u32 [%d1], %r2;\nret;\n}\n"
    )
    assert words(machine, text)[0] == 77


def test_a_scope_inside_has_its_own_variables(machine: Machine) -> None:
    """The outer `a` is untouched, and is `a` again behind the scope."""
    text = (
        ".visible .entry k(.param .u64 p)\n{\n.local .align 4 .b8 a[4];\n.reg .b32 %r<4>;\n"
        ".reg .b64 %d<2>;\nld.param.u64 %d1, [p];\nmov.u32 %r1, 5;\nst.local.u32 [a], %r1;\n"
        "{\n.local .align 4 .b8 a[64];\nmov.u32 %r2, 7;\nst.local.u32 [a], %r2;\n"
        "ld.local.u32 %r2, [a];\nst.global.u32 [%d1+4], %r2;\n}\n"
        "ld.local.u32 %r3, [a];\nst.global.u32 [%d1], %r3;\nret;\n}\n"
    )
    assert words(machine, text) == [5, 7]


def test_each_kernel_has_its_own_global_of_a_name(machine: Machine) -> None:
    """Two kernels with a `g` each, with other values, and one of the module."""
    one = (
        ".visible .entry {name}(.param .u64 p)\n{{\n.global .align 4 .u32 g = {value};\n"
        ".reg .b32 %r<3>;\n.reg .b64 %d<3>;\nld.param.u64 %d1, [p];\nld.global.u32 %r1, [g];\n"
        "st.global.u32 [%d1], %r1;\nret;\n}}\n"
    )
    text = one.format(name="a", value=1) + one.format(name="b", value=2)
    assert words(machine, text, "a")[0] == 1
    assert words(machine, text, "b")[0] == 2
    whole = ".global .align 4 .u32 g = 9;\n" + text
    assert [words(machine, whole, name)[0] for name in "ab"] == [1, 2]
