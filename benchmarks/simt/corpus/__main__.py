"""Foreign PTX: write the texts again, or say how much of them runs.

    python -m benchmarks.simt.corpus generate [--python PYTHON]   # nvcc, clang-19, Numba, Triton
    python -m benchmarks.simt.corpus score [--json FILE]

`--python` is an interpreter that has numba-cuda and Triton. A tool that is absent is NOT RUN,
and its texts stay as they are.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

from benchmarks.simt.corpus.score import TEXTS, launches, try_launch

HERE = Path(__file__).parent
CLANG = ("--cuda-device-only", "-nocudainc", "-nocudalib", "-Wno-unknown-cuda-version")


def generate(python: str) -> int:
    """Renew the texts; 3 when a tool was absent."""
    missing = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with zipfile.ZipFile(TEXTS) as archive:
            archive.extractall(folder)
        jobs = [
            (
                "nvcc",
                [
                    "nvcc",
                    "-ptx",
                    f"-arch={arch}",
                    str(HERE / "nvcc.cu"),
                    "-o",
                    f"{folder}/nvcc.{arch}.ptx",
                ],
            )
            for arch in ("sm_75", "sm_90a", "sm_100a")
        ]
        jobs += [
            (
                "clang",
                [
                    "clang-19",
                    "-x",
                    "cuda",
                    *CLANG,
                    f"--cuda-gpu-arch={arch}",
                    "-O2",
                    "-S",
                    str(HERE / "clang.cu"),
                    "-o",
                    f"{folder}/clang.{arch}.ptx",
                ],
            )
            for arch in ("sm_75", "sm_90")
        ]
        jobs += [
            (tool, [python, str(HERE / f"{tool}_kernels.py"), name]) for tool in ("numba", "triton")
        ]
        for tool, command in jobs:
            if shutil.which(command[0]) is None:
                print(f"{tool:<8}NOT RUN: {command[0]} is not installed")
                missing += 1
                continue
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{tool:<8}NOT RUN: {done.stderr.strip().splitlines()[-1]}")
                missing += 1
            else:
                print(f"{tool:<8}ok")
        pack(folder)
    return 3 if missing else 0


def pack(folder: Path) -> None:
    """All texts of a folder, the same bytes for the same texts."""
    with zipfile.ZipFile(TEXTS, "w", zipfile.ZIP_LZMA) as archive:
        for path in sorted(folder.glob("*.ptx")):
            archive.writestr(zipfile.ZipInfo(path.name), path.read_bytes(), zipfile.ZIP_LZMA)


def score(file: Path | None) -> int:
    """Print a line for each launch that is not right, and the shares; 1 when one is wrong."""
    outcomes = [try_launch(launch) for launch in launches()]
    counts: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        counts.setdefault(outcome.launch.tool, Counter())[outcome.stage] += 1
        if outcome.stage != "right":
            print(f"{outcome.launch.name:<28}{outcome.stage:<7}{outcome.why}")
    for tool, found in counts.items():
        total = sum(found.values())
        print(f"{tool:<8}{found['right']} of {total} right: {dict(found)}")
    right = sum(found["right"] for found in counts.values())
    print(f"all     {right} of {len(outcomes)}, {100 * right / len(outcomes):.1f} %")
    if file:
        others = [
            json.dumps({"launch": o.launch.name, "stage": o.stage, "why": o.why})
            for o in outcomes
            if o.stage != "right"
        ]
        listed = ",\n".join(others)
        file.write_text(f'{{"right": {right}, "of": {len(outcomes)}, "others": [\n{listed}\n]}}\n')
    return 0 if right == len(outcomes) else 1


def main() -> int:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("generate").add_argument("--python", default=sys.executable)
    verbs.add_parser("score").add_argument("--json", type=Path)
    given = parser.parse_args()
    return generate(given.python) if given.verb == "generate" else score(given.json)


if __name__ == "__main__":
    sys.exit(main())
