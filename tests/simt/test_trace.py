"""The lockstep trace and the timeline: which lanes an instruction runs in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bedplate.simt.api import (
    Issue,
    LaunchFailed,
    Machine,
    Reference,
    Tracer,
    row_json,
    row_text,
    sources_beside,
    timeline,
)

SPLIT = """.version 9.0
.target sm_90
.address_size 64
.file 1 "/build/of/somebody/split.cu"
.visible .entry split(.param .u64 cells)
{
.reg .pred %p<3>;
.reg .b32 %r<4>;
.reg .b64 %rd<4>;
.loc 1 2 1
mov.u32 %r1, %tid.x;
setp.lt.u32 %p1, %r1, 8;
@%p1 bra LOW;
.loc 1 3 1
mov.u32 %r2, 3; // not lane 0 to 7
bra BOTH;
LOW:
mov.u32 %r2, 4;
@!%p1 mov.u32 %r2, 5;
BOTH:
ld.param.u64 %rd1, [cells];
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
st.global.u32 [%rd3], %r2;
ret;
}
"""


def rows(machine: Machine, text: str, threads: Any, **options: Any) -> list[Issue]:
    """The rows of a launch over 64 words."""
    kernel = machine.load(text)["split"]
    cells = machine.array(np.zeros(64, np.uint32))
    found: list[Issue] = []
    try:
        Reference(kernel, 2, threads, (cells,), **options).run(Tracer(found.append))
    except LaunchFailed:
        found.append(None)  # type: ignore[arg-type]
    return found


def test_rows_of_a_branch_that_splits(machine: Machine) -> None:
    """Both sides in turn, each with its lanes, then all together; a branch's lanes are told."""
    found = [row for row in rows(machine, SPLIT, 40) if row.block == 0 and row.warp == 0]
    seen = [(row.made.place.line, row.mask, row.ran) for row in found]
    full, low = 0xFFFFFFFF, 0xFF
    assert seen[2:8] == [
        (13, full, low),
        (15, full ^ low, full ^ low),
        (16, full ^ low, full ^ low),
        (18, low, low),
        (19, low, 0),
        (21, full, full),
    ]
    assert [row.number for row in rows(machine, SPLIT, 40)] == list(range(44))


def test_lanes_that_are_none(machine: Machine) -> None:
    """The last warp of a block is part of one; blocks are told apart."""
    found = rows(machine, SPLIT, 40)
    assert {row.live for row in found if row.warp == 1} == {0xFF}
    assert {row.block for row in found} == {0, 1}


def test_texts_of_a_row(machine: Machine, tmp_path: Path) -> None:
    """The statement without its remark, and the source's line; JSON has the same in fields."""
    path = tmp_path / "split.ptx"
    (tmp_path / "split.cu").write_text("one\n two\n  three\n")
    found = rows(machine, SPLIT, 40)
    sources = sources_beside(path, SPLIT, machine.load(SPLIT)["split"].function)
    row = found[3]
    place = "/build/of/somebody/split.cu:3"
    assert row_text(row, sources) == (
        f"block 0 warp 0  ffffff00     15  mov.u32 %r2, 3;  ({place})"
    )
    assert sources.source(row.made) == f"{place}  three"
    document = json.loads(row_json(row, sources))
    assert document == {
        "issue": 3,
        "block": 0,
        "warp": 0,
        "line": 15,
        "file": "/build/of/somebody/split.cu",
        "source_line": 3,
        "text": "mov.u32 %r2, 3;",
        "mask": 0xFFFFFF00,
        "ran": 0xFFFFFF00,
        "live": 0xFFFFFFFF,
    }


def test_sources_lie_beside_the_ptx(machine: Machine, tmp_path: Path) -> None:
    """A path in `.file` is never followed, and what is no text is left out."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "split.cu").write_text("secret\n")
    function = machine.load(SPLIT.replace("/build/of/somebody", "elsewhere"))["split"].function
    path = tmp_path / "split.ptx"
    assert set(sources_beside(path, SPLIT, function).texts) == {str(path)}
    (tmp_path / "split.cu").write_bytes(b"\xff\xfe\x00")
    assert set(sources_beside(path, SPLIT, function).texts) == {str(path)}


def test_lines_are_a_compilers_and_safe_to_show(machine: Machine, tmp_path: Path) -> None:
    """Only line feeds end them, and a terminal obeys none of their characters."""
    odd = SPLIT.replace("// not lane", "// \x1b[2J \x0c \u2028 not lane")
    sources = sources_beside(tmp_path / "k.ptx", odd, machine.load(odd)["split"].function)
    assert sources.line(sources.ptx, 19) == "@!%p1 mov.u32 %r2, 5;"
    remarked = sources.line(sources.ptx, 15)
    assert remarked is not None
    assert remarked.isprintable()
    windows = sources_beside(
        tmp_path / "k.ptx", SPLIT.replace("\n", "\r\n"), machine.load(SPLIT)["split"].function
    )
    assert windows.line(windows.ptx, 19) == "@!%p1 mov.u32 %r2, 5;"


def test_a_timeline_leaves_no_trace(machine: Machine) -> None:
    """One block, at most so many rows, and memory as it was; a fault is not its business."""
    kernel = machine.load(SPLIT)["split"]
    cells = machine.array(np.full(64, 9, np.uint32))
    told = timeline(kernel, 2, 40, (cells,))
    assert {row.block for row in told.issues} == {0}
    assert (len(told.issues), told.cut) == (22, False)
    assert cells.numpy().tolist() == [9] * 64
    short = timeline(kernel, 2, 40, (cells,), most=7)
    assert (len(short.issues), short.cut) == (7, True)
    assert short.document()["issues"][2] == [0, 13, 0xFFFFFFFF, 0xFF, 0xFFFFFFFF]
    wild = machine.load(SPLIT.replace("[%rd3]", "[%rd2]"))["split"]
    assert timeline(wild, 2, 40, (cells,)).issues[-1].made.opcode == "st"


def test_a_fault_is_the_launchs(machine: Machine) -> None:
    """The rows until it, then what a launch says."""
    five = "setp.eq.u32 %p2, %r1, 5;\n@%p2 mov.u64 %rd3, 64;\nst.global"
    wild = SPLIT.replace("st.global", five)
    kernel = machine.load(wild, "w.ptx")["split"]
    cells = machine.array(np.zeros(64, np.uint32))
    said = []
    for start in (kernel.launch, lambda *launch: Reference(kernel, *launch).run(Tracer(id))):
        with pytest.raises(LaunchFailed, match=r"thread \(5, 0, 0\), w.ptx:26") as raised:
            start(1, 40, (cells,))
        said.append((str(raised.value), raised.value.fault))
    assert said[0] == said[1]
    assert said[0][1].address == 64
    assert rows(machine, wild, 40)[-2].made.opcode == "st"


def test_the_reference_writes_what_a_launch_writes(machine: Machine) -> None:
    """All blocks of the grid."""
    kernel = machine.load(SPLIT)["split"]
    cells = [machine.array(np.zeros(64, np.uint32)) for _ in range(2)]
    kernel[2, 40](cells[0])
    Reference(kernel, 2, 40, (cells[1],)).run(Tracer(id))
    assert cells[0].numpy().tolist() == cells[1].numpy().tolist()
