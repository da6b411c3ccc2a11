"""Plugins: a policy for replays and a rule for streams, from the examples and from liars."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from bedplate.runtime.api import (
    OptionsInvalid,
    PolicyBroken,
    Program,
    Ready,
    explore,
    load_trace,
    replay,
    sanitize,
)
from bedplate.runtime.trace import ALLOCATE, FREE, RECORD

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "native" / "runtime" / "examples"
TRACE = ROOT / "benchmarks" / "runtime" / "traces" / "prefetch.csv.xz"
INCLUDES = [f"-I{ROOT / part / 'include'}" for part in ("native/runtime", "native/hal")]
Build = Callable[..., str]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """A library of an example's file, or of a text, with flags besides."""
    folder = tmp_path_factory.mktemp("plugins")
    made: dict[tuple[str, ...], str] = {}

    def of(source: str, *flags: str) -> str:
        key = (source, *flags)
        if key not in made:
            path = EXAMPLES / source
            if not source.endswith(".c"):
                path = folder / f"{len(made)}.c"
                path.write_text(source)
            made[key] = str(folder / f"{len(made)}.so")
            words = ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", *INCLUDES]
            subprocess.run([*words, *flags, str(path), "-o", made[key]], check=True)
        return made[key]

    return of


def liar(allocate: str, free: str = "(void)address;") -> str:
    """A policy with one segment of 1 MiB, and these bodies."""
    return f"""
#include <bedplate/policy.h>
static const bp_runtime_segments *device;
static uint64_t base, given;
static void *start(const bp_runtime_segments *of) {{
    device = of;
    given = 0;
    base = of->create(of->self, 1 << 20);
    return &device;
}}
static uint64_t allocate(void *policy, uint64_t bytes, uint32_t stream) {{
    (void)policy, (void)bytes, (void)stream, (void)given;
    {allocate}
}}
static void give(void *policy, uint64_t address) {{ (void)policy; {free} }}
static void stop(void *policy) {{ (void)policy; }}
const bp_runtime_policy *bp_runtime_policy_1(void) {{
    static const bp_runtime_policy made = {{start, allocate, give, stop}};
    return &made;
}}
"""


TWO = np.array(
    [
        (0, 1, 4000, 0, ALLOCATE, 2, 0, 0),
        (1, 2, 4000, 0, ALLOCATE, 2, 0, 0),
        (2, 1, 0, 0, FREE, 2, 0, 0),
    ],
    RECORD,
)


def test_the_example_keeps_every_rule_and_coalescing_pays(build: Build) -> None:
    """On a recorded job: between what is live and twice of it; much worse without joining."""
    trace = load_trace(TRACE)[:8000]
    good, bad = build("first_fit.c"), build("first_fit.c", "-DNO_COALESCING")
    joined, apart = replay(trace, good), replay(trace, bad)
    ours = replay(trace, "bedplate")
    assert joined.live_peak_bytes == ours.live_peak_bytes
    assert ours.reserved_peak_bytes < joined.reserved_peak_bytes < apart.reserved_peak_bytes
    assert joined.driver_calls > 0
    assert joined.out_of_memory == 0
    assert joined.reserved.max() == joined.reserved_peak_bytes
    tight = replay(trace, good, capacity_bytes=joined.live_peak_bytes // 2)
    assert tight.out_of_memory > 0


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (liar("return base;"), "record 1: .* over the live block"),
        (liar("return base + 256 * given++;"), "record 1: .* inside the live block"),
        (liar("return base + 1;"), "record 0: .* no multiple of 256"),
        (liar("return base + (1 << 20) - 256;"), "record 0: .* in none of its segments"),
        (liar("return 4096;"), "record 0: .* in none of its segments"),
        (
            liar(
                "given += 4096; return base + given;",
                "(void)address; device->release(device->self, base);",
            ),
            "record 2: .* released a segment with the block at",
        ),
        (
            liar("given += 4096; return base + given;", "device->release(device->self, address);"),
            "record 2: .* which is no segment",
        ),
    ],
)
def test_a_policy_that_lies_is_told_with_its_record(build: Build, text: str, part: str) -> None:
    """Blocks over each other, outside, unaligned; segments released that are not empty, or none."""
    with pytest.raises(PolicyBroken, match=part):
        replay(TWO, build(text))


def test_what_a_policy_holds_is_counted_for_it(build: Build) -> None:
    """One segment on a device that has just that; half of it is none, and nothing fits."""
    honest = build(liar("given += 4096; return base ? base + given : 0;"))
    made = replay(TWO, honest, capacity_bytes=1 << 20)
    assert (made.reserved_peak_bytes, made.reserved_end_bytes) == (1 << 20, 1 << 20)
    assert (made.driver_calls, made.requests, made.out_of_memory) == (1, 2, 0)
    assert made.live_peak_bytes == 8000
    less = replay(TWO, honest, capacity_bytes=(1 << 20) - 1)
    assert (less.out_of_memory, less.reserved_peak_bytes) == (2, 0)


def test_a_library_without_a_policy_is_refused(build: Build, tmp_path: Path) -> None:
    """A missing file, and a library that exports something else."""
    with pytest.raises(OptionsInvalid, match="exports no bp_runtime_policy_1"):
        replay(TWO, str(tmp_path / "none.so"))
    with pytest.raises(OptionsInvalid, match="exports no bp_runtime_policy_1"):
        replay(TWO, build("in_order.c"))


def test_a_policy_that_knows_no_streams_is_found(build: Build) -> None:
    """The example reuses what another stream may still work on."""
    assert len(sanitize(load_trace(TRACE)[:2000], build("first_fit.c"))) > 0


def starving(rows: int) -> Program:
    """One batch of low priority, then many of high, all ready at once on one queue."""
    program = Program(ageing=2)
    queue = program.queue()
    low, host = program.stream(queue), program.host()
    highs = [program.stream(queue, priority=1) for _ in range(rows)]
    done = program.timeline()
    host.submit(low, signal=[(done, 1)], tag=1)
    for number, stream in enumerate(highs):
        host.submit(stream, tag=10 + number)
    host.wait((done, 1))
    return program


def test_a_rule_of_a_library_or_of_python_is_explored(build: Build) -> None:
    """First come is fair; the priority alone starves; ours ages; one that waits is stuck."""
    program = starving(4)
    assert explore(program).verdict == "clean"
    assert explore(program, rule=build("in_order.c")).verdict == "clean"
    greedy = explore(program, rule=build("in_order.c", "-DGREEDY"))
    assert greedy.verdict == "overtake"
    seen: list[Ready] = []

    def highest(ready: Sequence[Ready]) -> int:
        seen.extend(ready)
        return max(range(len(ready)), key=lambda i: (ready[i].priority, -ready[i].arrival))

    same = explore(program, rule=highest)
    assert (same.verdict, same.text) == (greedy.verdict, greedy.text)
    assert {head.tag for head in seen} == {1, 10, 11, 12, 13}
    assert {head.priority for head in seen} == {0, 1}
    assert explore(program, rule=lambda ready: None).verdict == "deadlock"
    with pytest.raises(ZeroDivisionError):
        explore(program, rule=lambda ready: 1 // 0)
    with pytest.raises(OptionsInvalid, match="exports no bp_runtime_rule_1"):
        explore(program, rule=build("first_fit.c"))
