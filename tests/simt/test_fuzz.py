"""Mutated PTX: a module or one typed sentence, never another error, in bounded time."""

from __future__ import annotations

import time

import pytest
from benchmarks.simt import mutations, progress

from bedplate.simt.api import PtxInvalid
from bedplate.simt.lexer import LARGEST
from bedplate.simt.parser import parse

SLICE, SOAK = 800, mutations.COUNT
HEAD = mutations.HEAD


@pytest.mark.parametrize(
    "count", [SLICE, pytest.param(SOAK, marks=pytest.mark.soak)], ids=["slice", "soak"]
)
def test_mutations_of_real_texts(count: int) -> None:
    """By seed, so that a failure comes back; some still load, most do not."""
    done = progress.Done.begin(None)
    mutations.campaign(count, done)
    assert 0 < done.counts["loaded"] < count / 2


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
