"""Mutated PTX: a module or one typed sentence, never another error, in bounded time."""

from __future__ import annotations

import random
import time

import pytest
from tests.simt.conftest import KERNELS

from bedplate.simt.api import PtxInvalid
from bedplate.simt.lexer import LARGEST
from bedplate.simt.parser import parse

SLICE, SOAK = 400, 1_000_000
HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
WORDS = (
    *(
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "<",
        ">",
        ",",
        ";",
        ":",
        ".",
        "@",
        "!",
        "|",
        "+",
        "-",
        "=",
        "_",
    ),
    *(
        "%r1",
        "%rd99999999",
        "%p1",
        "0",
        "4294967296",
        "0f7F",
        "0x",
        "1e999",
        '"',
        "/*",
        "\\",
        "\x07",
    ),
    *(".reg", ".param", ".shared", ".align", ".b32", ".func", "call", "bra", "mov.b32", ".v4", "é"),
)


def mutated(draw: random.Random, text: str) -> str:
    """A piece of a text with some of its words cut, doubled, swapped or replaced."""
    lines = text.splitlines()
    start = draw.randrange(len(lines))
    chosen = [HEAD] * draw.randint(0, 1) + lines[: draw.randint(5, 30)]
    chosen += lines[start : start + draw.randint(1, 60)]
    made = "\n".join(chosen)
    for _ in range(draw.randint(1, 6)):
        at = draw.randrange(len(made) + 1)
        end = min(at + draw.choice((0, 1, 1, 4, 30)), len(made))
        piece = draw.choice((draw.choice(WORDS), made[at:end] * 2, "", chr(draw.randrange(256))))
        made = made[:at] + piece + made[end:]
    return made


def judge(text: str) -> None:
    """Parse; what is wrong is one sentence with its place."""
    said = "f.ptx"
    try:
        parse(text, "f.ptx")
    except PtxInvalid as fault:
        said = str(fault)
    assert said.startswith("f.ptx")
    assert "\n" not in said


@pytest.mark.parametrize(
    "count", [SLICE, pytest.param(SOAK, marks=pytest.mark.soak)], ids=["slice", "soak"]
)
def test_mutations_of_real_texts(count: int) -> None:
    """By seed, so that a failure comes back."""
    texts = [path.read_text() for path in sorted(KERNELS.glob("*.ptx"))]
    for seed in range(count):
        draw = random.Random(seed)
        text = mutated(draw, draw.choice(texts))
        try:
            judge(text)
        except Exception as cause:
            raise AssertionError(f"seed {seed}: {cause!r}\n{text[-600:]}") from cause


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "{" * 100_000,
        HEAD + ".visible .entry k()\n" + "{" * 100_000,
        HEAD + ".global .b32 x = " + "{" * 100_000,
        HEAD + ".global .b32 x" + "[" * 100_000,
        HEAD + ".global .b32 x" + "[99999999]" * 1000 + ";",
        HEAD + ".visible .entry k(.param .b8 x[99999999999999]) { ret; }",
        HEAD + ".visible .entry k() { .reg .b32 %r<99999999>; ret; }",
        HEAD + "." + "a" * 1_000_000,
        HEAD + "9" * 100_000,
        HEAD + ".visible .entry k() { .reg .b32 %r<2>; mov.u32 %r1, " + "9" * 100_000 + "; }",
        "\x7fELF\x02\x01" + "\0" * 1000,
        "MZ" + "".join(chr(n) for n in range(256)) * 100,
        "",
        " " * 1_000_000,
        "/*" * 500_000,
        " " * (LARGEST + 1),
    ],
    ids=lambda text: f"{text[60:80]!r}{len(text)}",
)
def test_hostile_texts(text: str) -> None:
    """Deep, long, huge, binary and empty: refused, and the processor time is bounded."""
    began = time.thread_time()
    with pytest.raises(PtxInvalid) as raised:
        parse(text, "f.ptx")
    assert len(str(raised.value)) < 400
    assert time.thread_time() - began < 20
