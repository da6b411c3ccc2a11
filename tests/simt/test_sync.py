"""Votes, shuffles and reductions: both engines, and what the ISA says they give."""

from __future__ import annotations

import numpy as np
import pytest
from tests.simt.texts import head, whole

from bedplate.simt.api import LaunchFailed, Machine, verify

HEAD = (
    head("out:u64")
    + """ld.param.u64 %rd1, [out];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
mul.lo.u32 %r2, %r1, 7;
and.b32 %r3, %r2, 5;
setp.gt.u32 %p1, %r3, 3;
mov.u32 %r9, 0;
"""
)
LANE = np.arange(32, dtype=np.int64)
VALUE = LANE * 7 & 5


def run(machine: Machine, *lines: str, plain: bool = False) -> list[int]:
    """%r9 of 32 lanes, by both engines; `plain` runs the fast one as it is used too."""
    text = whole(HEAD, *lines, "st.global.u32 [%rd3], %r9;")
    out = machine.array(np.zeros(32, np.uint32))
    kernel = machine.load(text, "k.ptx")["k"]
    verify(kernel, 1, 32, (out,))
    if plain:
        kernel[1, 32](out)
    return [int(value) for value in out.numpy()]


def bits(lanes: np.ndarray) -> int:
    """A mask of booleans."""
    return sum(1 << lane for lane in range(32) if lanes[lane])


def test_votes(machine: Machine) -> None:
    """Ballot, all, any and uni, of all lanes and of half-warps that name themselves."""
    said = VALUE > 3
    assert run(machine, "vote.sync.ballot.b32 %r9, %p1, -1;") == [bits(said)] * 32
    halves = ["setp.lt.u32 %p2, %r1, 16;", "selp.b32 %r4, 0xFFFF, 0xFFFF0000, %p2;"]
    low, high = bits(said) & 0xFFFF, bits(said) & 0xFFFF0000
    assert run(machine, *halves, "vote.sync.ballot.b32 %r9, %p1, %r4;") == [low] * 16 + [high] * 16
    for mode, expected in (("all", 0), ("any", 1), ("uni", 0)):
        lines = [f"vote.sync.{mode}.pred %p3, %p1, -1;", "selp.u32 %r9, 1, 0, %p3;"]
        assert run(machine, *lines) == [expected] * 32


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    ("mode", "b", "c"),
    [
        ("up", 1, 0),
        ("down", 3, 31),
        ("bfly", 16, 31),
        ("idx", 5, 31),
        ("down", 2, 0x181F),
        ("up", 4, 0x1800),
        ("bfly", 1, 0x1C1F),
        ("idx", 33, 0x101F),
    ],
)
def test_shuffles(machine: Machine, mode: str, b: int, c: int, constant: bool) -> None:
    """Each mode in full and narrow segments; constants and registers give the same."""
    segment, clamp, distance = c >> 8 & 31, c & 31, b & 31
    first = LANE & segment
    last = first | (clamp & ~segment)
    source = {
        "up": LANE - distance,
        "down": LANE + distance,
        "bfly": LANE ^ distance,
        "idx": first | (distance & ~segment),
    }[mode]
    inside = source >= last if mode == "up" else source <= last
    source = np.where(inside, source, LANE)
    expected = VALUE[source] + np.where(inside, 1000, 0)
    operands = (b, c) if constant else ("%r5", "%r6")
    lines = [f"add.u32 %r5, %r9, {b};", f"add.u32 %r6, %r9, {c};"]
    lines += [f"shfl.sync.{mode}.b32 %r7|%p2, %r3, {operands[0]}, {operands[1]}, -1;"]
    lines += ["add.u32 %r9, %r7, 1000;", "@!%p2 mov.u32 %r9, %r7;"]
    assert run(machine, *lines) == expected.tolist()


def test_match_and_reduce(machine: Machine) -> None:
    """Lanes of one value, and six reductions."""
    assert run(machine, "match.any.sync.b32 %r9, %r3, -1;") == [bits(v == VALUE) for v in VALUE]
    signed = "sub.s32 %r4, %r3, 2;"
    for name, expected in (
        ("add.s32", sum(VALUE - 2)),
        ("min.s32", -2),
        ("max.s32", 3),
        ("max.u32", 0xFFFFFFFF),
        ("and.b32", int(np.bitwise_and.reduce(VALUE - 2))),
        ("or.b32", int(np.bitwise_or.reduce(VALUE - 2))),
        ("xor.b32", int(np.bitwise_xor.reduce(VALUE - 2))),
    ):
        lines = [signed, f"redux.sync.{name} %r9, %r4, -1;"]
        assert run(machine, *lines) == [int(expected) % (1 << 32)] * 32


def test_two_lanes_in_a_branch_then_all(machine: Machine) -> None:
    """Lanes 0 and 16 exchange under their own mask, then the whole warp shuffles.

    Reported in gunrock/gunrock #324.
    """
    lines = ["mov.u32 %r9, %r1;", "and.b32 %r4, %r1, 15;", "setp.ne.u32 %p2, %r4, 0;"]
    lines += ["@%p2 bra JOIN;", "shfl.sync.bfly.b32 %r9, %r9, 16, 31, 0x00010001;", "JOIN:"]
    lines += ["shfl.sync.up.b32 %r9, %r9, 1, 0, -1;"]
    exchanged = LANE.copy()
    exchanged[[0, 16]] = 16, 0
    assert run(machine, *lines, plain=True) == [exchanged[max(lane - 1, 0)] for lane in LANE]


def test_active_mask_in_a_branch(machine: Machine) -> None:
    """The lanes that take the branch."""
    lines = ["@!%p1 bra OUT;", "activemask.b32 %r9;", "OUT:"]
    taken = VALUE > 3
    assert run(machine, *lines) == [bits(taken) if yes else 0 for yes in taken]


@pytest.mark.parametrize("mask", ["-1", "%r9"])
def test_a_named_lane_that_is_not_here(machine: Machine, mask: str) -> None:
    """A fault by both engines, with the line; never a wrong result."""
    lines = ["@%p1 bra OUT;", f"bar.warp.sync {mask};", "OUT:"]
    with pytest.raises(LaunchFailed, match=r"names is not here.*bar.warp.sync") as raised:
        run(machine, *lines)
    assert raised.value.status == "fault"
