"""What it costs a fresh process to load and negotiate every backend, without a device.

    python -m benchmarks.hal.load --out results.json [--quick]

Each round is a process of its own that loads all backends of the package with
`bp_hal_load`; the files are in the page cache. There is no peer: nobody has
published such a number. The goal is 20 ms for all of them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from bedplate.core.machine import machine_facts, tree_facts
from bedplate.core.measurement import Measurement, measured, store
from bedplate.core.paths import native_library_dir
from bedplate.core.samples import summarise
from bedplate.hal.abi import ABI_VERSION

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "Release" / "native" / "hal" / "bedplate_hal_load"
GOAL_NS = 20e6


def rounds_of(count: int) -> dict[str, list[float]]:
    """Nanoseconds of each library and of all, one value a process."""
    libraries = sorted((native_library_dir() / "hal.d").glob("*.so"))
    values: dict[str, list[float]] = defaultdict(list)
    # The first fills the page cache.
    for turn in range(count + 1):
        told = subprocess.run([PROGRAM, *libraries], capture_output=True, text=True, check=True)
        for line in told.stdout.splitlines() if turn else ():
            name, _, value = line.partition(" ")
            values[name].append(float(value))
    return dict(values)


def main() -> int:
    """Measure, print and store; 1 when loading misses its goal, 3 when NOT RUN."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    tree = tree_facts(ROOT)
    if tree is None or not PROGRAM.exists():
        lacking = "a git tree, for the commit" if tree is None else "`make build`, for its program"
        print(f"NOT RUN: the benchmark wants {lacking}", file=sys.stderr)
        return 3
    rounds = 10 if arguments.quick else 50
    values = rounds_of(rounds)
    results: list[Measurement] = []
    for name, nanoseconds in values.items():
        whole = name == "total"
        label = name.removeprefix("bedplate_hal_").removesuffix(".so")
        summary = summarise(nanoseconds)
        results.append(
            measured(
                summary,
                rounds=rounds,
                tree=tree,
                system="hal",
                name="load_all" if whole else f"load_{label}",
                unit="ns",
                better="lower",
                machine=machine_facts(),
                versions={"abi": ABI_VERSION},
                conditions={"backends": len(values) - 1, "cache": "warm"},
                goal=GOAL_NS if whole else None,
            )
        )
        print(f"load {'all' if whole else label:<10}{summary.p50 / 1e6:>8.3f} ms")
    store(arguments.out, results)
    missed = summarise(values["total"]).p50 > GOAL_NS
    print(f"loading all: goal {GOAL_NS / 1e6:.0f} ms {'MISSED' if missed else 'met'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
