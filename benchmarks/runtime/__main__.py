"""What the allocator costs on the host, and what recorded jobs hold under it.

    python -m benchmarks.runtime --out results.json [--quick]

Pairs of allocate and free run on a device of numbers, through the C interface:
nanoseconds, the best of each process, and instructions by callgrind as the slope
between 20,000 and 120,000 pairs, the loop around them taken off (NOT RUN without
valgrind). Replays have no
noise: reserved over live of each recorded job, the peer being what PyTorch held
when the job was recorded.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.trial import ROOT, Trial, begin

from bedplate.core.paths import native_library_dir
from bedplate.core.samples import Ratio, summarise
from bedplate.runtime.api import find_job, load_trace, replay

PROGRAM = ROOT / "build" / "Release" / "native" / "runtime" / "bedplate_runtime_pairs"
TRACES = Path(__file__).parent / "traces"
LIBRARY = "libbedplate_runtime.so"
GOALS_NS = {"hot": 20.0, "split": None, "random": 120.0}
GOALS_INSTRUCTIONS = {"hot": 150.0, "split": 400.0, "random": None}


def pair_ns(kind: str, count: int) -> float:
    """Nanoseconds of a pair in a process of its own."""
    command = [PROGRAM, native_library_dir() / LIBRARY, kind, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def slope(valgrind: str, kind: str) -> float:
    """Instructions of one more pair, the loop around it included."""
    few, many = (instructions(valgrind, kind, count) for count in (20_000, 120_000))
    return (many - few) / 100_000


def instructions(valgrind: str, kind: str, count: int) -> int:
    """All instructions of a process with so many pairs."""
    done = subprocess.run(
        [valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null", PROGRAM,
         native_library_dir() / LIBRARY, kind, str(count)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    line = next(line for line in done.stderr.splitlines() if "Collected" in line)
    return int(line.rpartition(":")[2])


def pairs(trial: Trial) -> None:
    """Nanoseconds and instructions of each kind of pair."""
    rounds = trial.rounds(9, 3)
    valgrind = shutil.which("valgrind")
    values: dict[str, list[float]] = {kind: [] for kind in GOALS_NS}
    for _ in range(rounds):
        for kind, times in values.items():
            times.append(pair_ns(kind, 1_000_000))
    loop = slope(valgrind, "empty") if valgrind else 0.0
    for kind, times in values.items():
        record = trial.add(
            summarise(times),
            rounds=rounds,
            name=f"pair_{kind}",
            unit="ns",
            better="lower",
            conditions={"device": "numbers", "interface": "C, by handle"},
            goal=GOALS_NS[kind],
        )
        print(f"pair {kind:<8}{record.p50:>9.1f} ns")
        if valgrind is None:
            print(f"pair {kind:<8}      NOT RUN: valgrind is not installed")
            continue
        count = slope(valgrind, kind) - loop
        record = trial.add(
            summarise([count]),
            rounds=1,
            name=f"pair_{kind}_instructions",
            unit="instructions",
            better="lower",
            conditions={"counted by": "callgrind", "loop, taken off": loop},
            goal=GOALS_INSTRUCTIONS[kind],
        )
        print(f"pair {kind:<8}{count:>9.1f} instructions")


def ratios(trial: Trial) -> None:
    """Reserved over live of each recorded job, with remap and without."""
    for path in sorted(TRACES.glob("*.csv.xz")):
        trace, job = load_trace(path), find_job(path)
        if job is None:
            continue
        for policy, goal in (("bedplate", 1.05), ("bedplate-noremap", 1.15)):
            outcome = replay(trace, policy)
            theirs = job.peak_reserved_bytes / outcome.live_peak_bytes
            ours, peer = summarise([outcome.ratio]), summarise([theirs])
            trial.add(
                ours,
                rounds=1,
                name=f"reserved_over_live_{job.job}_{policy.replace('-', '_')}",
                unit="ratio",
                better="lower",
                conditions={"job": job.what, "live_bytes": outcome.live_peak_bytes},
                peer_name=f"PyTorch on {job.device}, recorded",
                peer_version=job.torch,
                ratio=Ratio(theirs / outcome.ratio, None, ours, peer, 1),
                goal=goal,
            )
            print(f"{job.job:<12}{policy:<18}{outcome.ratio:7.4f}  PyTorch {theirs:6.4f}")


def main() -> int:
    """Measure, print and store; 1 when a goal is missed, 3 when NOT RUN."""
    trial = begin("runtime", __doc__, programs=(PROGRAM,), versions={"abi": "runtime.h 1"})
    ratios(trial)
    pairs(trial)
    return trial.finish()


if __name__ == "__main__":
    sys.exit(main())
