"""How fast PTX runs: thread-instructions a second of one core, and the time to a first launch.

    python -m benchmarks.simt --out results.json [--quick]

The kernels are those of the tests, as nvcc wrote them. A thread-instruction is one PTX
instruction in one active lane; their number is counted by the reference on one block, and
every block of these launches does the same. Times are the calling thread's processor time,
with one host thread, all quantities in turn in every round. `first_launch` compiles, and
`warm_launch` finds the code on disk; LLVM is imported before both, which takes a tenth of a
second once a process.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import llvmlite
import numpy as np
from benchmarks.trial import ROOT, begin

import bedplate.simt.interpreter.classes  # noqa: F401 - registers the reference
from bedplate.core.samples import summarise
from bedplate.simt import arguments, stored
from bedplate.simt.api import Kernel, Machine
from bedplate.simt.interpreter.engine import Grid, Observer, WarpState
from bedplate.simt.machine import LaunchShape
from bedplate.simt.module import Instruction

PTX = ROOT / "tests" / "simt" / "kernels" / "first.sm_90a.ptx"
GOALS = {"saxpy_loop": 25.0, "nbody": 15.0, "matmul": 5.0}
"""In 10**9 a second; set for a core with AVX-512."""
STARTS_MS = {"first_launch": 150.0, "warm_launch": 5.0}
"""Goals of the time to the end of a first launch, by what is on disk."""


@dataclass
class Case:
    """A launch that is measured."""

    name: str
    kernel: Kernel
    grid: Any
    block: Any
    values: tuple[Any, ...]
    conditions: dict[str, Any]
    instructions: int = field(init=False)

    def __post_init__(self) -> None:
        self.instructions = _count(self)

    def run(self) -> float:
        """10**9 thread-instructions a second of one launch."""
        began = time.thread_time_ns()
        self.kernel.launch(self.grid, self.block, self.values)
        return self.instructions / (time.thread_time_ns() - began)


@dataclass
class Counter(Observer):
    """Watches the reference and adds up active lanes."""

    total: int = 0

    def issued(self, warp: WarpState, made: Instruction, mask: int) -> None:
        """One instruction in the lanes of a mask."""
        self.total += mask.bit_count()


def _count(case: Case) -> int:
    kernel = case.kernel
    shape = LaunchShape.of(kernel, case.grid, case.block, 0)
    places, counter = kernel.places, Counter()
    packed = arguments.pack(kernel.function, places.parameters, places.parameter_bytes, case.values)
    Grid(
        kernel.graph,
        places,
        kernel.machine.memory,
        kernel.loaded.symbols,
        shape.grid,
        shape.block,
        packed,
        observer=counter,
    ).run_block(0)
    return counter.total * shape.blocks


def cases(machine: Machine, text: str) -> list[Case]:
    """The three kernels and their sizes."""
    loaded = machine.load(text, PTX.name)
    draw = np.random.default_rng(1)
    size, turns, bodies, side = 1 << 20, 64, 2048, 256
    x = machine.array(draw.random(size, np.float32))
    y = machine.array(draw.random(size, np.float32))
    points = machine.array(draw.random((bodies, 4), np.float32))
    out = machine.empty((bodies, 4), np.float32)
    a, b = (machine.array(draw.random((side, side), np.float32)) for _ in range(2))
    c = machine.empty((side, side), np.float32)
    saxpy = (np.float32(0.5), x, y, np.uint32(size), np.int32(turns))
    tiles = side // 16
    return [
        Case("saxpy_loop", loaded["saxpy_loop"], size // 128, 128, saxpy, {"k": turns, "n": size}),
        Case(
            "nbody", loaded["nbody"], bodies // 128, 128, (points, out, np.int32(bodies)),
            {"n": bodies},
        ),
        Case(
            "matmul", loaded["matmul"], (tiles, tiles), (16, 16), (a, b, c, np.int32(side)),
            {"n": side, "tile": 16},
        ),
    ]  # fmt: skip


def start(text: str, cache: str) -> float:
    """Milliseconds of processor time from a text to the end of saxpy's first launch.

    `cache` is `0` to compile, `1` to take what is on disk.
    """
    os.environ[stored.VARIABLE] = cache
    with Machine(threads=1, memory=1 << 20) as machine:
        x, y = machine.array(np.zeros(128, np.float32)), machine.array(np.zeros(128, np.float32))
        began = time.thread_time_ns()
        kernel = machine.load(text)["saxpy"]
        kernel[1, 128](np.float32(2), x, y, np.uint32(128))
        return (time.thread_time_ns() - began) / 1e6


def main() -> int:
    """Measure, print and store; 1 when a goal is missed, 3 when NOT RUN."""
    trial = begin(
        "simt",
        __doc__,
        programs=(PTX,),
        versions={"llvmlite": llvmlite.__version__, "numpy": np.__version__},
    )
    rounds = trial.rounds(60, 5)
    text = PTX.read_text(encoding="utf-8")
    alone = text[: text.index(".visible .entry saxpy_loop")]
    with tempfile.TemporaryDirectory() as folder, Machine(threads=1) as machine:
        os.environ["BEDPLATE_CACHE_DIR"] = folder
        listed = cases(machine, text)
        work: dict[str, Callable[[], float]] = {case.name: case.run for case in listed}
        work["first_launch"] = lambda: start(alone, "0")
        work["warm_launch"] = lambda: start(alone, "1")
        for run in work.values():
            run()
        values: dict[str, list[float]] = {name: [] for name in work}
        for _ in range(rounds):
            for name, run in work.items():
                values[name].append(run())
    for case in listed:
        summary = summarise(values[case.name])
        trial.add(
            summary,
            rounds=rounds,
            name=case.name,
            unit="10^9 thread-instructions/s",
            better="higher",
            goal=GOALS[case.name],
            conditions={**case.conditions, "threads": 1, "instructions": case.instructions},
            quality={"suite": "tests/simt/test_engines.py"},
        )
        print(f"{case.name:<14}{summary.p50:8.2f} G/s  p5 {summary.p5:.2f} p95 {summary.p95:.2f}")
    for name, goal in STARTS_MS.items():
        summary = summarise(values[name])
        trial.add(
            summary,
            rounds=rounds,
            name=name,
            unit="ms",
            better="lower",
            goal=goal,
            conditions={"kernel": "saxpy", "threads": 1},
        )
        print(f"{name:<14}{summary.p50:8.2f} ms   p5 {summary.p5:.2f} p95 {summary.p95:.2f}")
    return trial.finish()


if __name__ == "__main__":
    sys.exit(main())
