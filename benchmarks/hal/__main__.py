"""What the HAL costs from C, beside a plain function call in the same process.

    python -m benchmarks.hal --out results.json [--quick]

`bedplate_hal_bench` interleaves all quantities in every round; here they become
measurements. Every value is a median over rounds; none is a best case.

`command_marginal` is what one more command adds: the difference between batches of
1,200 and 300 over the 900 commands between them. It leaves out what a batch costs
once, mostly waking the executor, which `one_launch` shows; `command_64` has it
spread over 64 commands. Between 300 and 64 that one wake, some microseconds more or
less, moved the difference by tens of nanoseconds: it gave 21 and 68 where callgrind
counts 351 and 300 instructions a command at submit. The goal of 50 ns is for the
marginal cost.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from typing import Any

from benchmarks.trial import ROOT, begin

from bedplate.core.paths import native_library_dir
from bedplate.core.samples import compare, summarise
from bedplate.hal.abi import ABI_VERSION
from bedplate.hal.api import open_device

BENCH = ROOT / "build" / "Release" / "native" / "hal" / "bedplate_hal_bench"
GOAL_NS = 50.0
CONDITIONS: dict[str, dict[str, Any]] = {
    "table_call": {"function": "timeline.query"},
    "one_launch": {"commands": 1, "blocks": 1},
    "command_64": {"commands": 64, "blocks": 1},
    "command_300": {"commands": 300, "blocks": 1},
    "command_1200": {"commands": 1200, "blocks": 1},
    "submit_64": {"commands": 64, "blocks": 1},
    "submit_300": {"commands": 300, "blocks": 1},
    "submit_1200": {"commands": 1200, "blocks": 1},
    "grid_2": {"commands": 300, "blocks": 2},
    "grid_16": {"commands": 300, "blocks": 16},
    "command_marginal": {"from_commands": 300, "to_commands": 1200, "blocks": 1},
}


def run(rounds: int) -> dict[str, list[float]]:
    """Nanoseconds of each quantity, one value a round."""
    libraries = native_library_dir()
    command = [BENCH, libraries / "hal.d" / "bedplate_hal_cpu.so"]
    command += [libraries / "conform" / "bedplate_hal_conform.so", str(rounds)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    values: dict[str, list[float]] = defaultdict(list)
    for line in told.splitlines():
        name, _, value = line.partition(" ")
        values[name].append(float(value))
    pairs = zip(values["command_1200"], values["command_300"], strict=True)
    values["command_marginal"] = [(1200 * many - 300 * few) / 900 for many, few in pairs]
    return dict(values)


def main() -> int:
    """Measure, print and store; 1 when the marginal cost misses its goal, 3 when NOT RUN."""
    trial = begin("hal", __doc__, programs=(BENCH,), better="lower", versions={"abi": ABI_VERSION})
    rounds = trial.rounds(300, 20)
    values = run(rounds)
    with open_device("cpu", trust_claims=True) as device:
        threads = device.info.properties["cpu.threads"]
    for name, conditions in CONDITIONS.items():
        fields: dict[str, Any] = {"goal": GOAL_NS} if name == "command_marginal" else {}
        if name == "table_call":
            fields |= {"peer_name": "local function call", "peer_version": "gcc -O2, noinline"}
            fields["ratio"] = compare(values[name], values["direct_call"], "lower")
        summary = summarise(values[name])
        trial.add(
            summary,
            rounds=rounds,
            name=name,
            unit="ns",
            conditions=conditions | {"threads": threads},
            quality={"suite": "bedplate hal conform cpu"},
            **fields,
        )
        low, high = summary.interval or (float("nan"), float("nan"))
        print(
            f"{name:<17}{summary.p50:>11.1f} ns  [{low:.1f}, {high:.1f}]"
            f"  p5 {summary.p5:.1f} p95 {summary.p95:.1f}"
        )
    missed = trial.finish()
    codes = [missed]
    for part in ("load", "step"):
        command = [sys.executable, "-m", f"benchmarks.hal.{part}", "--out", str(trial.out)]
        command += ["--quick"] if trial.quick else []
        codes.append(subprocess.run(command, check=False).returncode)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
