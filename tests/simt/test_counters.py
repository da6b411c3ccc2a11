"""Compiled counters equal the reference's, which are the pure rules lane by lane."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simt import programs
from tests.simt.texts import head, whole

from bedplate.simt import banks, coalescing
from bedplate.simt.api import Kernel, Machine
from bedplate.simt.arguments import pack
from bedplate.simt.counts import Count
from bedplate.simt.interpreter.engine import Grid
from bedplate.simt.machine import LaunchShape
from bedplate.simt.tally import Tally

HEAD = (
    head("p:u64 base:u32 limit:u32", 16384)
    + """ld.param.u64 %rd1, [p];
ld.param.u32 %r8, [base];
ld.param.u32 %r9, [limit];
mov.u32 %r1, %tid.x;
"""
)


def kernel(machine: Machine, *lines: str) -> Kernel:
    """A kernel with an array in %rd1, two numbers in %r8 and %r9, and %tid.x in %r1."""
    return machine.load(whole(HEAD, *lines), "k.ptx")["k"]


def both(made: Kernel, grid: Any, block: Any, values: Any) -> dict[int, Count]:
    """The counts of a launch, after comparing the engines."""
    report = made.launch(grid, block, values, profile=True).report
    assert report is not None
    shape = LaunchShape.of(made, grid, block, 0)
    places = made.places
    packed = pack(made.function, places.parameters, places.parameter_bytes, values)
    tally = Tally()
    reference = Grid(
        made.graph,
        places,
        made.machine.memory,
        made.loaded.symbols,
        shape.grid,
        shape.block,
        packed,
        observer=tally,
    )
    for number in range(shape.blocks):
        reference.run_block(number)
    assert dict(report.counts) == dict(sorted(tally.counts.items()))
    return dict(report.counts)


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(n, marks=pytest.mark.soak) for n in range(3, 60))]
)
def test_random_control_flow(machine: Machine, seed: int) -> None:
    """Issues, lanes and divergence of kernels that split in every way."""
    out = machine.array(np.zeros(256, np.uint32))
    made = machine.load(programs.program(seed, barriers=seed % 3 == 2))["k"]
    assert both(made, 2, (64, 50)[seed % 2], (out, np.uint32(seed)))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    factor=st.sampled_from([0, 1, 2, 3, 4, 5, 8, 17, 32, 33]),
    width=st.sampled_from(["u8", "u16", "u32", "u64", "v2.u32", "v4.u32"]),
    space=st.sampled_from(["global", "shared"]),
    known=st.booleans(),
    guard=st.sampled_from(["", "@%p1 ", "@!%p1 "]),
    base=st.integers(0, 31),
    limit=st.integers(0, 40),
    threads=st.sampled_from([32, 64, 20]),
)
def test_accesses(
    factor: int,
    width: str,
    space: str,
    known: bool,
    guard: str,
    base: int,
    limit: int,
    threads: int,
) -> None:
    """Strides, widths, alignments and guards, with and without a shape that is known."""
    size = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "v2.u32": 8, "v4.u32": 16}[width]
    target = {"u8": "%h1", "u16": "%h1", "u64": "%rd7"}.get(width, "%r3")
    target = {"v2.u32": "{%r3, %r4}", "v4.u32": "{%r3, %r4, %r5, %r6}"}.get(width, target)
    index = "mov.u32 %r2, %r1;" if known else "xor.b32 %r2, %r1, 5;"
    address = "add.s64 %rd3, %rd1, %rd2;" if space == "global" else "mov.u64 %rd3, %rd2;"
    with Machine(threads=1, memory=1 << 20) as machine:
        made = kernel(
            machine,
            "setp.lt.u32 %p1, %r1, %r9;",
            index,
            "add.u32 %r2, %r2, %r8;",
            f"mul.lo.u32 %r2, %r2, {size};",
            f"mul.wide.u32 %rd2, %r2, {factor};",
            address,
            f"{guard}ld.{space}.{width} {target}, [%rd3];",
        )
        data = machine.array(np.zeros(65536 // 4, np.uint32))
        shape = (data, np.uint32(base if factor < 17 else 0), np.uint32(limit))
        room = 16384 // max(factor * size, 1) - 32 if space == "shared" else threads
        both(made, 1, min(threads, max(room, 1)), shape)


def test_generic_addresses(machine: Machine) -> None:
    """Lanes count where their addresses are."""
    made = kernel(
        machine,
        "mul.wide.u32 %rd2, %r1, 8;",
        "add.s64 %rd3, %rd1, %rd2;",
        "mov.u64 %rd4, tile;",
        "cvta.shared.u64 %rd5, %rd4;",
        "add.s64 %rd5, %rd5, %rd2;",
        "setp.lt.u32 %p1, %r1, %r9;",
        "@%p1 mov.u64 %rd3, %rd5;",
        "ld.u32 %r2, [%rd3];",
        "ld.u32 %r2, [%rd5];",
    )
    data = machine.array(np.zeros(64, np.uint32))
    counts = both(made, 1, 32, (data, np.uint32(0), np.uint32(8)))
    mixed = counts[11]
    assert (mixed.active, mixed.shared_active, mixed.sectors, mixed.wavefronts) == (24, 8, 6, 1)


def test_atomics(machine: Machine) -> None:
    """Histograms in both spaces: some lanes at one place."""
    made = kernel(
        machine,
        "and.b32 %r2, %r1, 7;",
        "mul.wide.u32 %rd2, %r2, 4;",
        "add.s64 %rd3, %rd1, %rd2;",
        "atom.global.add.u32 %r3, [%rd3], 1;",
        "shl.b32 %r4, %r2, 2;",
        "mov.u32 %r5, tile;",
        "add.u32 %r5, %r5, %r4;",
        "red.shared.add.u32 [%r5], %r3;",
    )
    data = machine.array(np.zeros(8, np.uint32))
    counts = both(made, 2, 48, (data, np.uint32(0), np.uint32(0)))
    assert (counts[7].requests, counts[7].sectors, counts[11].wavefronts) == (4, 4, 4)


def test_first_kernels(machine: Machine, first: str) -> None:
    """Compiler output; saxpy touches 4 sectors a request, matmul has no conflicts."""
    loaded = machine.load(first)
    x = machine.array(np.arange(1024, dtype=np.float32))
    y = machine.array(np.ones(1024, np.float32))
    both(loaded["saxpy"], 4, 128, (np.float32(2), x, y, np.uint32(500)))
    run = loaded["saxpy"][8, 128](np.float32(2), x, y, np.uint32(1024), profile=True)
    assert run.report.sectors_per_request == 4.0
    assert run.report.lane_efficiency == 1.0
    tiles = machine.array(np.ones((2, 32, 32), np.float32))
    c = machine.empty((32, 32), np.float32)
    values = (tiles, tiles, c, np.int32(32))
    both(loaded["matmul"], (2, 2), (16, 16), values)
    report = loaded["matmul"].launch((2, 2), (16, 16), values, profile=True).report
    assert report.total.conflicts == 0
    assert report.wavefronts_per_request == 1.0


@given(st.lists(st.integers(0, 2000), min_size=1, max_size=32), st.sampled_from([1, 2, 4, 8, 16]))
def test_rules(units: list[int], size: int) -> None:
    """Both rules against their definitions, counted another way."""
    addresses = [unit * size for unit in units]
    assert coalescing.sectors(addresses) == np.unique(np.array(addresses) >> 5).size
    touched = np.zeros((40000 // 128, 32), bool)
    for address in addresses:
        for byte in range(size):
            touched[(address + byte) // 128, (address + byte) // 4 % 32] = True
    assert banks.wavefronts(addresses, size) == max(banks.least(size), touched.sum(0).max())


def test_field_cases() -> None:
    """Vectors at a stride of 128 and 16 bytes, and two rows of a tile of pitch 17.

    Source: NVIDIA developer forum, topic 359822.
    """
    assert banks.wavefronts([128 * lane for lane in range(32)], 16) == 32
    assert banks.wavefronts([16 * lane for lane in range(32)], 16) == 4
    rows = [4 * (17 * (lane // 16) + lane % 16) for lane in range(32)]
    assert banks.wavefronts(rows, 4) == 2
