"""Fuzzed calls across all tables of the cpu backend, under ASan with UBSan and under TSan.

A failure prints its seed and call; `native/fuzz.c` says what each answer must
keep. `make test` runs a bounded slice, `make soak` a million, whose rate goes
to the benchmark results.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.hal.sanitized import FLAGS, Sanitized

from bedplate.core.machine import TreeFacts, machine_facts, tree_facts
from bedplate.core.measurement import measured, results_path, store
from bedplate.core.samples import summarise
from bedplate.hal.abi import ABI_VERSION

ROOT = Path(__file__).resolve().parents[2]
THREADS = {"address": 1, "thread": 4}
REACHED = {
    *(f"api->core->{name}" for name in ("enumerate", "open", "properties", "capabilities")),
    *(f"api->mem->{name}" for name in ("create", "release", "describe", "pin")),
    *(f"api->queue->{name}" for name in ("create", "submit", "flush", "destroy")),
    *(f"api->timeline->{name}" for name in ("create", "signal", "query", "wait_host", "destroy")),
    *(f"api->module->{name}" for name in ("load", "info", "kernel", "kernel_info", "unload")),
    *(f"ops->{name}" for name in ("plan", "release")),
    *("copy", "fill", "launch", "op", "timestamp"),
    *("matmul", "quantized", "rmsnorm", "rope", "attention", "softmax", "silu_mul", "embedding"),
    *("sample", "kv_write", "block_copy", "reduce", "convert"),
}
"""Functions, commands and ops that a run must have had accepted: else it fuzzed a wall."""


@pytest.fixture(scope="module")
def tree() -> TreeFacts:
    """The tree before a result is stored in it."""
    found = tree_facts(ROOT)
    assert found is not None
    return found


def fuzz(built: Sanitized, module: Path, seed: int, calls: int, threads: int) -> dict[str, int]:
    """A run without a finding: how often what was accepted, and all calls under `calls`."""
    words = (str(module), str(seed), str(calls), str(threads))
    done = built.run(built.program("fuzz"), *words, timeout=50 + calls / 500)
    assert done.returncode == 0, f"seed {seed}: {done.stdout[-500:]}{done.stderr[-6000:]}"
    first, *rest = done.stdout.splitlines()
    counts = {"calls": int(first.split()[0])}
    for line in rest:
        name, _, count = line.rpartition(" ")
        counts[name] = counts.get(name, 0) + int(count)
    return counts


@pytest.mark.timeout(180)
@pytest.mark.parametrize("sanitizer", list(FLAGS))
def test_a_slice_of_fuzzed_calls(
    sanitized: Callable[[str], Sanitized], sanitizer: str, conform_module: Path
) -> None:
    """25,000 calls of one seed; everything that can be accepted was."""
    counts = fuzz(sanitized(sanitizer), conform_module, 7, 25_000, THREADS[sanitizer])
    assert counts["calls"] >= 25_000
    missed = {name for name in REACHED if not counts.get(name)}
    # Four threads share the calls, and each has few modules.
    assert {name for name in missed if "module" not in name or sanitizer == "address"} == set()


@pytest.mark.soak
@pytest.mark.parametrize("sanitizer", list(FLAGS))
def test_a_million_fuzzed_calls(
    sanitized: Callable[[str], Sanitized], sanitizer: str, conform_module: Path, tree: TreeFacts
) -> None:
    """New seeds each time; the rate is stored with the number of calls."""
    built, threads, rates, calls = sanitized(sanitizer), THREADS[sanitizer], [], 0
    seed = random.SystemRandom().randrange(1 << 32)
    for turn in range(10):
        start = time.perf_counter()
        done = fuzz(built, conform_module, seed + turn, 100_000, threads)["calls"]
        rates.append(done / (time.perf_counter() - start))
        calls += done
    assert calls >= 1_000_000
    machine = machine_facts()
    record = measured(
        summarise(rates),
        rounds=len(rates),
        tree=tree,
        system="hal",
        name=f"fuzzed_calls_{sanitizer}",
        unit="calls/s",
        better="higher",
        machine=machine,
        versions={"abi": ABI_VERSION},
        seed=seed,
        quality={"calls": calls, "findings": 0},
        conditions={"sanitizer": sanitizer, "threads": threads, "backend": "cpu"},
    )
    store(results_path(ROOT / "benchmarks" / "results", machine), [record])
