"""What an H200 answered where texts leave doubt: NaNs, and results next to underflow.

Each row is a form, operands, and the bits that the GPU gave; both engines must give them.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.simt import fuzz, tuples

from bedplate.simt.api import Machine, PtxUnsupported, verify
from bedplate.simt.signature import table

FLUSHED = """
mul.ftz.f32 00800000 bf7fffff : 80000000
mul.ftz.f32 3f7fffff 00800000 : 00000000
mul.ftz.f32 00800001 3f7ffffe : 00800000
mul.rz.ftz.f32 00800001 3f7ffffe : 00000000
mul.rm.ftz.f32 00800001 bf7ffffd : 80000000
mul.rp.ftz.sat.f32 3f7fffff 00800000 : 00000000
mul.f32 00800000 bf7fffff : 80800000
fma.rn.ftz.f32 00800000 3f7fffff 001f1999 : 00000000
fma.rp.ftz.f32 80800001 bf7ffffd 00000000 : 00000000
mad.rn.ftz.sat.f32 00800000 3f7fffff 001f1999 : 00000000
div.rm.ftz.f32 80800000 3f800001 : 80000000
div.rp.ftz.f32 00800000 3f800001 : 00000000
div.rp.f32 00800000 3f800001 : 00800000
"""
PAYLOADS = """
add.f64 4024004000400400 7ff8000000000003 : 7ff8000000000003
add.f64 7ff0000000000001 3fb9b9c0a5e1feda : 7ff8000000000001
add.f64 fffffffffffffffa 7ff0000000000007 : 7ff8000000000007
sub.rz.f64 7ff8000000000001 7ff8000000000000 : 7ff8000000000000
mul.rm.f64 fff8000000000000 7ff8000000000002 : 7ff8000000000002
fma.rn.f64 43dffffffffffffd 1d5602b4ddc339c6 fff0000000000003 : fff8000000000003
fma.rp.f64 3fda8812a321288e fff8000000000005 fff8000000000000 : fff8000000000005
fma.rn.f64 7ff0000000000001 3ff0000000000000 7ff0000000000002 : 7ff8000000000002
div.rn.f64 fffffffffffffffa 7ff0000000000007 : fffffffffffffffa
div.rn.f64 97b6d2ea0285b93e 7ff0000000000001 : 7ff8000000000001
rcp.rn.f64 7ff0000000000001 : 7ff8000000000001
sqrt.rn.f64 fff0000000000001 : fff8000000000001
sqrt.rn.f64 bff0000000000000 : fff8000000000000
min.f64 fffffffffffffffa 7ff0000000000007 : 7ff8000000000007
max.f64 7ff8000000000000 7ffffffffffffffb : 7ffffffffffffffb
max.f64 4024004000400400 7ff8000000000003 : 4024004000400400
abs.f64 fff0000000000001 : fff8000000000001
neg.f64 7ff0000000000008 : 7ff8000000000008
cvt.rn.f32.f64 fff8000000000001 : ffc00000
cvt.rz.ftz.f32.f64 7ff0000000000001 : 7fc00000
cvt.rn.sat.f32.f64 fff8000000000001 : 00000000
cvt.f64.f32 ff800003 : fff8000060000000
cvt.ftz.f64.f32 ff800003 : 7fffffffe0000000
cvt.f64.f16 7fb8 : 7ffee00000000000
cvt.f64.f16 7c01 : 7ff8040000000000
cvt.f32.f16 7c01 : 7fffffff
cvt.f32.bf16 7f81 : 7f810000
cvt.f32.f32 ff800003 : ff800003
cvt.ftz.f32.f32 ff800003 : 7fffffff
cvt.f64.f64 fff0000000000001 : fff0000000000001
cvt.rni.f64.f64 fff0000000000001 : fff8000000000001
"""
WHOLE = """
cvt.rni.u64.f32 ff800003 : 8000000000000000
cvt.rzi.ftz.sat.s64.f32 fffffffe : 8000000000000000
cvt.rpi.u64.f16 7fb8 : 8000000000000000
cvt.rni.u8.f64 7ff8000000000000 : 80
cvt.rmi.s8.f64 fff8000000000001 : 80
cvt.rni.u32.f64 7ff0000000000001 : 80000000
cvt.rni.s32.f64 7ff8000000000000 : 80000000
cvt.rni.sat.s64.f64 7ff0000000000001 : 8000000000000000
cvt.rni.s32.f32 7fc00000 : 00000000
cvt.rzi.u16.f32 ffc00000 : 0000
"""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(FLUSHED, id="flushed"),
        pytest.param(PAYLOADS, id="payloads", marks=pytest.mark.soak),
        pytest.param(WHOLE, id="whole"),
    ],
)
def test_answers(machine: Machine, text: str) -> None:
    """All rows of a form in the lanes of one warp."""
    rows: dict[str, list[tuple[list[int], int]]] = {}
    for line in text.strip().splitlines():
        given, answer = line.split(" : ")
        name, *words = given.split()
        rows.setdefault(name, []).append(([int(word, 16) for word in words], int(answer, 16)))
    for name, cases in rows.items():
        form, slots = table.find(name)[0]
        source, told = fuzz.kernel(name, "k", form, slots)
        columns = [
            np.resize(np.array(column, tuples.WORDS[tuples.bits(kind)]), 32)
            for column, kind in zip(
                zip(*(case for case, _ in cases), strict=True), told["inputs"], strict=True
            )
        ]
        out = machine.array(np.zeros(32, tuples.WORDS[tuples.bits(told["outputs"][0])]))
        values = (*(machine.array(column) for column in columns), out)
        verify(machine.load(fuzz.HEAD + source)["k"], 1, 32, values)
        for (case, answer), got in zip(cases, out.numpy().tolist(), strict=False):
            assert hex(got) == hex(answer), (name, [hex(value) for value in case])


def test_a_warp_without_the_rare_case(machine: Machine) -> None:
    """The branch around what NaNs need is taken for no lane, for one, and for all."""
    form, slots = table.find("add.f64")[0]
    source, _ = fuzz.kernel("add.f64", "k", form, slots)
    kernel = machine.load(fuzz.HEAD + source)["k"]
    for odd in (0, 1, 32):
        a = np.arange(32, dtype=np.float64)
        a[:odd] = np.nan
        out = machine.array(np.zeros(32))
        verify(kernel, 1, 32, (machine.array(a), machine.array(a), out))
        assert np.array_equal(out.numpy(), a + a, equal_nan=True)


@pytest.mark.parametrize(
    ("refused", "near"),
    [
        ("cvt.sat.u16.u8", "cvt.u16.u8"),
        ("cvt.sat.s64.s64", "cvt.s64.s64"),
        ("cvt.sat.s16.u8", "cvt.s16.u8"),
    ],
)
def test_a_saturation_without_effect(machine: Machine, refused: str, near: str) -> None:
    """The assembler refuses it, so the table does; named is what there is."""
    text = f"{fuzz.HEAD}.visible .entry k() {{\n.reg .b64 %a<2>;\n{refused} %a0, %a1;\nret;\n}}"
    with pytest.raises(PtxUnsupported, match=f"the nearest form is {near}$"):
        machine.load(text)


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
def test_a_remainder_by_zero_is_all_ones(kind: str) -> None:
    """The ISA leaves it open; this is what an H200 gives, and both engines."""
    bits = int(kind[1:])
    register = {16: "h", 32: "r", 64: "d"}[bits]
    text = (
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 p, .param .u64 q)\n{\n"
        ".reg .b16 %h<3>;\n.reg .b32 %r<3>;\n.reg .b64 %d<5>;\n"
        "ld.param.u64 %d3, [p];\nld.param.u64 %d4, [q];\n"
        f"ld.global.{kind} %{register}1, [%d3];\nmov.b{bits} %{register}2, 0;\n"
        f"rem.{kind} %{register}1, %{register}1, %{register}2;\n"
        f"st.global.{kind} [%d4], %{register}1;\nret;\n}}\n"
    )
    word = np.dtype(f"{'i' if kind[0] == 's' else 'u'}{bits // 8}")
    with Machine(threads=1, memory=1 << 20) as machine:
        x, y = machine.array(np.array([5], word)), machine.array(np.zeros(1, word))
        verify(machine.load(text)["k"], 1, 1, (x, y))
        assert y.numpy().view(f"u{bits // 8}")[0] == (1 << bits) - 1
