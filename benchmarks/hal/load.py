"""What it costs a fresh process to load and negotiate every backend, without a device.

    python -m benchmarks.hal.load --out results.json [--quick]

Each round is a process of its own that loads all backends of the package with
`bp_hal_load`; the files are in the page cache. There is no peer: nobody has
published such a number. The goal is 20 ms for all of them.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict

from benchmarks.trial import ROOT, begin

from bedplate.core.paths import native_library_dir
from bedplate.core.samples import summarise
from bedplate.hal.abi import ABI_VERSION

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
    trial = begin(
        "hal", __doc__, programs=(PROGRAM,), better="lower", versions={"abi": ABI_VERSION}
    )
    rounds = trial.rounds(50, 10)
    values = rounds_of(rounds)
    for name, nanoseconds in values.items():
        label = name.removeprefix("bedplate_hal_").removesuffix(".so").replace("total", "all")
        record = trial.add(
            summarise(nanoseconds),
            rounds=rounds,
            name=f"load_{label}",
            unit="ns",
            conditions={"backends": len(values) - 1, "cache": "warm"},
            goal=GOAL_NS if label == "all" else None,
        )
        print(f"load {label:<10}{record.p50 / 1e6:>8.3f} ms")
    return trial.finish()


if __name__ == "__main__":
    sys.exit(main())
