"""`make bench`: run the benchmarks of each system and store what they measured.

    .venv/bin/python benchmarks/run.py [SYSTEM...] [--quick]

A system's benchmarks are `benchmarks/<system>/__main__.py`, run as a process
of its own with `--out <results file>` (and `--quick` for a trial). It measures
us and the peer interleaved, stores measurement/1 records through
`core.measurement`, and exits 0, 1 (a goal that must hold was missed) or 3
(something is lacking: NOT RUN).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from bedplate.core.machine import machine_facts
from bedplate.core.measurement import results_path

HERE = Path(__file__).resolve().parent


def main() -> int:
    """Run what was asked, print one verdict a system, return the worst code."""
    available = sorted(path.parent.name for path in HERE.glob("*/__main__.py"))
    parser = argparse.ArgumentParser(description="run benchmarks beside their peers")
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help=f"of {', '.join(available)}")
    parser.add_argument("--quick", action="store_true", help="few rounds, to try the code")
    parser.add_argument("--results", type=Path, default=HERE / "results", metavar="DIR")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.systems) - set(available)):
        parser.error(f"{unknown[0]!r} has no benchmarks")
    arguments.results.mkdir(parents=True, exist_ok=True)
    out = results_path(arguments.results, machine_facts())
    verdicts = {}
    for system in arguments.systems or available:
        print(f"== {system}", flush=True)
        command = [sys.executable, "-m", f"benchmarks.{system}", "--out", str(out)]
        command += ["--quick"] if arguments.quick else []
        environment = os.environ | {"PYTHONPATH": str(HERE.parent)}
        verdicts[system] = subprocess.run(
            command, cwd=HERE.parent, env=environment, check=False
        ).returncode
    for system, code in verdicts.items():
        print(f"{system:<16}{ {0: 'done', 1: 'GOAL MISSED', 3: 'NOT RUN'}.get(code, 'FAILED') }")
    print(out)
    return max(verdicts.values(), default=0)


if __name__ == "__main__":
    sys.exit(main())
