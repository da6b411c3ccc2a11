"""Which registers are kept as scalars, in the cases where that matters or would be wrong."""

from __future__ import annotations

import pytest
from tests.simt.conftest import KERNELS

from bedplate.simt import graph, liveness, uniformity
from bedplate.simt.module import Function
from bedplate.simt.parser import parse
from bedplate.simt.uniformity import LANE, UNIFORM, Extended, Layout, Pattern, Shape

HEAD = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u32 n)
{
.reg .pred %p<9>;
.reg .b32 %r<9>;
.reg .b64 %rd<9>;
ld.param.u32 %r1, [n];
mov.u32 %r2, %tid.x;
"""


def shapes(function: Function, block: tuple[int, int, int] = (128, 1, 1)) -> dict[str, Shape]:
    """The shape of each register by its name."""
    made = graph.build(function)
    found = uniformity.analyse(made, liveness.analyse(made), Layout.of(block))
    return {r.name: found.shapes[r.index] for r in function.registers}


def of(*lines: str) -> dict[str, Shape]:
    """The shapes of a kernel of lines."""
    return shapes(parse("\n".join([HEAD, *lines, "ret;", "}"])).functions["k"])


def test_the_inner_loops_of_real_kernels_are_scalar() -> None:
    """Loop counters, conditions and shared addresses; data are vectors."""
    module = parse((KERNELS / "first.sm_90a.ptx").read_text())
    loop = shapes(module.functions["saxpy_loop"])
    assert loop["%r14"] == loop["%p4"] == UNIFORM
    assert isinstance(loop["%rd1"], Extended)
    assert loop["%f19"] is None
    tiles = shapes(module.functions["matmul"], (16, 16, 1))
    assert isinstance(tiles["%r7"], Pattern)
    assert tiles["%r7"].values == tuple(lane // 16 * 64 for lane in range(32))


def test_arithmetic_on_patterns() -> None:
    """Sums, products with constants, shifts and extensions keep a pattern."""
    found = of(
        "mad.lo.s32 %r3, %r2, 12, %r1;",
        "shl.b32 %r4, %r3, 1;",
        "sub.s32 %r5, %r1, %r2;",
        "mul.wide.s32 %rd1, %r2, -4;",
        "and.b32 %r6, %r2, 3;",
        "mul.lo.s32 %r7, %r2, %r1;",
    )
    assert found["%r2"] == LANE
    assert found["%r4"] == Pattern(tuple(24 * lane for lane in range(32)))
    assert found["%r5"] == Pattern(tuple(-lane for lane in range(32)))
    assert found["%rd1"] == Extended(-4, True, LANE.values)
    assert found["%r6"] is None
    assert found["%r7"] is None


def test_a_register_that_adds_to_itself_before_any_write() -> None:
    """What was never written is zero; what comes of it is no longer uniform."""
    found = of("add.u32 %r3, %r3, %r2;", "st.global.u32 [%rd1], %r3;")
    assert found["%r3"] is None


def test_a_counter_that_lanes_need_after_they_left_the_loop() -> None:
    """Lanes leave at different turns: read afterwards it is a vector, unread a scalar."""
    loop = (
        "mov.u32 %r3, 0;",
        "L:",
        "add.u32 %r3, %r3, 1;",
        "setp.lt.u32 %p1, %r3, %r2;",
        "@%p1 bra L;",
    )
    assert of(*loop)["%r3"] == UNIFORM
    assert of(*loop, "st.global.u32 [%rd1], %r3;")["%r3"] is None


@pytest.mark.parametrize(
    ("block", "axes"),
    [
        ((64, 1, 1), (True, True, True)),
        ((100, 1, 1), (True, True, True)),
        ((32, 4, 2), (True, True, True)),
        ((8, 8, 4), (True, True, True)),
        ((48, 2, 1), (False, False, True)),
        ((3, 5, 7), (False, False, False)),
    ],
)
def test_layouts(block: tuple[int, int, int], axes: tuple[bool, bool, bool]) -> None:
    """An axis has a shape when it is the same in every warp of the block."""
    assert tuple(shape is not None for shape in Layout.of(block).tid) == axes
