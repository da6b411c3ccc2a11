"""PTX text: what is read, and what is refused with its place."""

from __future__ import annotations

import contextlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simt.conftest import KERNELS

from bedplate.simt.api import PtxInvalid, PtxUnsupported, parse
from bedplate.simt.module import Immediate, Place

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
FIRST = (KERNELS / "first.sm_75.ptx").read_text()


def body(*lines: str) -> str:
    """A kernel around lines; the first of them is line 10."""
    registers = ".reg .b32 %r<4>;\n.reg .f32 %f<4>;\n.reg .pred %p<2>;\n.reg .b64 %rd<4>;\n"
    text = "\n".join(lines)
    return f"{HEAD}.visible .entry k(.param .u32 n)\n{{\n{registers}{text}\nret;\n}}\n"


def test_a_compilers_text_is_read(first: str) -> None:
    """Every kernel, with its parameters, variables and lines of the source."""
    module = parse(first, "first.ptx")
    assert module.kernels == ["saxpy", "saxpy_loop", "nbody", "matmul"]
    matmul = module.functions["matmul"]
    assert [v.size for v in matmul.variables] == [1024, 1024]
    lines = {made.source.line for made in matmul.instructions if made.source is not None}
    assert {made.source.file for made in matmul.instructions if made.source} == {"first.cu"}
    assert any("sum +=" in (KERNELS / "first.cu").read_text().splitlines()[n - 1] for n in lines)


@pytest.mark.parametrize(
    ("line", "place", "words"),
    [
        ("frobnicate.b32 %r1, %r2;", (10, 1), "'frobnicate' is not supported"),
        ("add.s33 %r1, %r2, %r3;", (10, 1), r"\.s33 cannot stand there; the nearest form is add"),
        ("add.rn.foo.f32 %f1, %f2, %f3;", (10, 1), r"\.foo cannot stand there"),
        ("add.s32 %r1, %r2;", (10, 17), "lacks its operand b"),
        ("add.s32 %r1, %r2, %r9;", (10, 19), "%r9 is not a name"),
        ("add.s32 %f1, %r2, %r3;", (10, 9), r"%f1 is .f32, and operand d of add is .s32"),
        ("add.s64 %rd1, %rd2, %r3;", (10, 21), r"%r3 is .b32, and operand b"),
        ("mov.u32 %r1, %tidd.x;", (10, 14), "the nearest is '%tid.x'"),
        ("mov.u32 %r1, 4294967296;", (10, 14), "4294967296 does not fit .u32"),
        ("mov.u16 %r1, 1;", (10, 9), "%r1 is .b32"),
        ("bra NOWHERE;", (10, 1), "the label NOWHERE"),
        ("@%r1 bra X;", (10, 2), "%r1 is not a predicate"),
        ("ld.global.v2.f32 {%f1}, [%rd1];", (10, 18), "1 operands stand where .v2 is"),
        ("ld.param.u32 %r1, [n+4];", (10, 1), "beyond the parameter"),
        ("ld.global.u32 %r1, [n];", (10, 1), "names n, which is .param"),
        ("add.s32 %r1, %r2, \x01;", (10, 19), "does not belong to PTX"),
        ('mov.b32 %r1, "x', (10, 14), "a string that does not end"),
        ("st.param.b32 [n], %r1;", (10, 1), "writes to the parameter n of a kernel"),
        ("call.uni f, (n);", (10, 1), "'f' has no body in this text"),
        ("call.uni %r1, (n);", (10, 1), "through the register %r1"),
        ("mov.b32 %r1, {%r2};", (10, 14), r"1 parts do not make \.b32"),
        ("mov.b32 {%r1, %r2}, %r3;", (10, 10), r"%r1 is \.b32"),
        (".reg .b8 %x;", (10, 7), "not a register's type"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(
    line: str, place: tuple[int, int], words: str
) -> None:
    """file:line:column, what is wrong, and what is near."""
    with pytest.raises(PtxInvalid, match=words) as raised:
        parse(body(line), "bad.ptx")
    assert str(raised.value).startswith(f"bad.ptx:{place[0]}:{place[1]}: ")
    assert raised.value.exit_code == 2


def test_an_unknown_instruction_is_an_error_of_its_own() -> None:
    """A caller can tell what it lacks from what is wrong."""
    with pytest.raises(PtxUnsupported):
        parse(body("frobnicate.b32 %r1, %r2;"))


def test_literals() -> None:
    """Decimal, octal, hexadecimal, binary, and the exact forms of floats."""
    lines = ["mov.u32 %r1, 017;", "mov.u32 %r1, 0x1FU;", "mov.s32 %r1, -1;", "mov.u32 %r1, 0b101;"]
    lines += ["mov.f32 %f1, 0fFFC12345;", "mov.f32 %f1, 1.5;", "mov.b32 %r1, 0f3F800000;"]
    module = parse(body(*lines))
    found = [made.operands["a"] for made in module.functions["k"].instructions[:-1]]
    bits = [operand.bits for operand in found if isinstance(operand, Immediate)]
    assert bits == [15, 31, 0xFFFFFFFF, 5, 0xFFC12345, 0x3FC00000, 0x3F800000]


def test_scopes_hide_names() -> None:
    """A register of an inner scope is another one, and ends with it."""
    inner = ["mov.u32 %r1, 1;", "{", ".reg .b32 %r<2>;", "mov.u32 %r1, 2;", "}", "mov.u32 %r1, 3;"]
    made = parse(body(*inner)).functions["k"].instructions
    written = [instruction.outputs[0][0].index for instruction in made[:3]]
    assert written[0] == written[2] != written[1]
    assert made[1].place == Place(13, 1)


@pytest.mark.parametrize(
    "text", ["", "\0ELF", ".version 9.0", "{" * 100_000, "/* open", "9" * 10**5]
)
def test_odd_texts_are_refused(text: str) -> None:
    """Nothing, binary, half a text, deep nesting, an open comment."""
    with pytest.raises(PtxInvalid):
        parse(text)


def test_deep_nesting_is_refused() -> None:
    """Braces inside a function have a limit, so no text exhausts the stack."""
    with pytest.raises(PtxInvalid, match="nested deeper"):
        parse(body("{" * 5000))


@given(st.integers(0, len(FIRST)))
def test_a_cut_text_is_refused_or_whole(end: int) -> None:
    """Wherever a text is cut, nothing but `PtxInvalid` comes out."""
    with contextlib.suppress(PtxInvalid):
        assert parse(FIRST[:end]).target == "sm_75"


@given(st.integers(0, 1 << 30))
def test_a_damaged_text_is_refused_or_read(seed: int) -> None:
    """A few characters replaced by others."""
    draw = random.Random(seed)
    text = list(FIRST)
    for _ in range(3):
        text[draw.randrange(len(text))] = draw.choice('.;,{}[]%@!:|-+<>0f9xus \n"')
    with contextlib.suppress(PtxInvalid):
        parse("".join(text))
