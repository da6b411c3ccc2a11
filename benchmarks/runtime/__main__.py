"""What the allocator costs on the host, and what recorded jobs hold under it.

    python -m benchmarks.runtime --out results.json [--quick]

Pairs of allocate and free run on a device of numbers, through the C interface:
nanoseconds, a process each, in rounds that take OffsetAllocator's method beside us
(`native/runtime/bench/offset.cpp`: no lock, no streams, no figures), and
instructions by callgrind as the slope between 20,000 and 120,000 pairs, the loop
around them taken off (NOT RUN without valgrind). Replays have no noise: reserved
over live of each recorded job, the peer being what PyTorch held when the job was
recorded.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.trial import ROOT, Trial, begin

from bedplate.core.paths import native_library_dir
from bedplate.core.samples import Ratio, compare, summarise
from bedplate.runtime.api import find_job, load_trace, replay

PROGRAM = ROOT / "build" / "Release" / "native" / "runtime" / "bedplate_runtime_pairs"
TRACES = Path(__file__).parent / "traces"
OURS = native_library_dir() / "libbedplate_runtime.so"
OFFSET = PROGRAM.with_name("libbedplate_runtime_offset.so")
PEER = "OffsetAllocator's method"
GOALS_NS = {"hot": 20.0, "split": None, "random": 120.0}
GOALS_INSTRUCTIONS = {"hot": 150.0, "split": 400.0, "random": None}


def pair_ns(library: Path, kind: str, count: int) -> float:
    """Nanoseconds of a pair in a process of its own."""
    command = [PROGRAM, library, kind, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def slope(valgrind: str, library: Path, kind: str) -> float:
    """Instructions of one more pair, the loop around it included."""
    few, many = (instructions(valgrind, library, kind, count) for count in (20_000, 120_000))
    return (many - few) / 100_000


def instructions(valgrind: str, library: Path, kind: str, count: int) -> int:
    """All instructions of a process with so many pairs."""
    done = subprocess.run(
        [valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null", PROGRAM,
         library, kind, str(count)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    line = next(line for line in done.stderr.splitlines() if "Collected" in line)
    return int(line.rpartition(":")[2])


def pairs(trial: Trial) -> None:
    """Nanoseconds and instructions of each kind of pair, beside the peer's."""
    rounds = trial.rounds(9, 3)
    times: dict[tuple[str, Path], list[float]] = {}
    for _ in range(rounds):
        for kind in GOALS_NS:
            for library in random.sample((OURS, OFFSET), 2):
                times.setdefault((kind, library), []).append(pair_ns(library, kind, 1_000_000))
    for kind, goal in GOALS_NS.items():
        ratio = compare(times[kind, OURS], times[kind, OFFSET], "lower")
        record = trial.add(
            ratio.ours,
            rounds=rounds,
            name=f"pair_{kind}",
            unit="ns",
            better="lower",
            conditions={"device": "numbers", "interface": "C, by handle"},
            peer_name=PEER,
            peer_version="bench/offset.cpp",
            ratio=ratio,
            goal=goal,
        )
        print(
            f"pair {kind:<8}{record.p50:>9.1f} ns, the peer {ratio.peer.p50:.1f}: "
            f"ratio {ratio.ratio:.2f}"
        )
    count_pairs(trial)


def count_pairs(trial: Trial) -> None:
    """Instructions of each kind of pair, beside the peer's."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        print("instructions of a pair NOT RUN: valgrind is not installed")
        return
    loop = slope(valgrind, OURS, "empty")
    for kind, goal in GOALS_INSTRUCTIONS.items():
        ours, peer = (slope(valgrind, library, kind) - loop for library in (OURS, OFFSET))
        trial.add(
            summarise([ours]),
            rounds=1,
            name=f"pair_{kind}_instructions",
            unit="instructions",
            better="lower",
            conditions={"counted by": "callgrind", "loop, taken off": loop},
            peer_name=PEER,
            peer_version="bench/offset.cpp",
            ratio=Ratio(peer / ours, None, summarise([ours]), summarise([peer]), 1),
            goal=goal,
        )
        print(f"pair {kind:<8}{ours:>9.1f} instructions, the peer {peer:.1f}")


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
    trial = begin("runtime", __doc__, programs=(PROGRAM, OFFSET), versions={"abi": "runtime.h 1"})
    ratios(trial)
    pairs(trial)
    return trial.finish()


if __name__ == "__main__":
    sys.exit(main())
