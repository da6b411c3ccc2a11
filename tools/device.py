"""`make device`: everything that needs a GPU, in one suite, or NOT RUN and why.

    .venv/bin/python tools/device.py [--out DIR] [--quick]

Five steps, each a process of its own: the tests marked `device`, the full tier
of `hal conform cuda`, the benchmarks of BENCHMARKS, and the software GPU beside the GPU,
with forms that are made here where LLVM is, else those under build/simt-device. The
certificate goes to
`<out>/certificates/<date>-<device>-<backend>.json`, the measurements to
`<out>/results/<date>-<machine>-<device>.json`; `out` is `benchmarks`. A step
that failed does not stop the next.

Exit code 0 when all of it passed, 1 when a step failed or a goal was missed,
3 when something was NOT RUN. A machine without an accelerator runs nothing
and is never a pass.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# A driver node of each vendor: NVIDIA, AMD, Intel.
NVIDIA = "dev/nvidiactl"
NODES = (NVIDIA, "dev/kfd", "dev/dri/renderD128")
ENTRY = "from bedplate.cli.main import entry; entry()"
NO_TESTS = 5
"""pytest's exit code when it has collected nothing."""
BENCHMARKS = ("benchmarks.hal.cuda", "benchmarks.runtime.cuda")
"""What the backend adds to the driver; the runtime beside the driver's own ways."""
BESIDE = "simt beside the GPU"
VERDICTS = {0: "passed", 1: "FAILED", 3: "NOT RUN"}


def run(command: Sequence[str | Path]) -> int:
    """The exit code of a Python process in the tree's root, which finds `benchmarks` there."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    words = [sys.executable, *map(str, command)]
    environment = os.environ | {"PYTHONPATH": path}
    return subprocess.run(words, cwd=ROOT, env=environment, check=False).returncode


def tests() -> int:
    """The tests marked `device`."""
    code = run(["-m", "pytest", "-m", "device", "-rs"])
    if code == NO_TESTS:
        print("NOT RUN: no test is marked `device`", file=sys.stderr)
        return 3
    return code


def conform(out: Path) -> int:
    """The full tier of the suite; the certificate is stored also when a case failed."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data:
        words = ["-c", ENTRY, "hal", "conform", "cuda", "--tier", "full", "--data-dir", data]
        return run([*words, "--out", out])


def benchmark(module: str, out: Path, quick: bool) -> int:
    """Measure and store; a later run adds to the file of an earlier one."""
    out.parent.mkdir(parents=True, exist_ok=True)
    return run(["-m", module, "--out", out, *(["--quick"] if quick else [])])


def beside(results: Path) -> int:
    """The software GPU's forms and counters, on the GPU."""
    folder = ROOT / "build" / "simt-device"
    if find_spec("llvmlite") is not None:
        ptxas = shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
        if not Path(ptxas).exists():
            print("simt beside the GPU NOT RUN: there is no ptxas", file=sys.stderr)
            return 3
        made = run(["-m", "benchmarks.simt.fuzz", "generate", folder, "--ptxas", ptxas])
        made = made or run(["-m", "benchmarks.simt.patterns", "generate", folder])
        if made:
            return made
    elif not all((folder / name).exists() for name in ("manifest.json", "expected.npz")):
        said = "there is no llvmlite to make the forms, and none under build/simt-device"
        print(f"simt beside the GPU NOT RUN: {said}", file=sys.stderr)
        return 3
    results.parent.mkdir(parents=True, exist_ok=True)
    out = folder / "answers"
    return run(["-m", "benchmarks.simt.device", folder, out, "--results", results])


def device_name() -> str | None:
    """The GPU's name for a file, as `h200`; None when the cuda backend has no device."""
    from bedplate.hal.api import HalError, open_device

    try:
        with open_device("cuda", trust_claims=True) as device:
            name = device.info.name
    except HalError as error:
        print(f"NOT RUN: {error.message}", file=sys.stderr)
        return None
    return re.sub(r"[^a-z0-9]+", "-", name.lower().removeprefix("nvidia")).strip("-")


def suite(out: Path, quick: bool) -> dict[str, int]:
    """The exit code of each step, in their order."""
    from bedplate.core.machine import machine_facts
    from bedplate.core.measurement import results_path

    codes = {"tests marked device": tests()}
    name = device_name()
    if name is None:
        return codes | dict.fromkeys(("hal conform cuda", *BENCHMARKS, BESIDE), 3)
    day = time.strftime("%Y-%m-%d", time.gmtime())
    results = results_path(out / "results", machine_facts(), day)
    certificate = out / "certificates" / f"{day}-{name}-cuda.json"
    codes["hal conform cuda"] = conform(certificate)
    measured = results.with_name(f"{results.stem}-{name}.json")
    codes |= {module: benchmark(module, measured, quick) for module in BENCHMARKS}
    return codes | {BESIDE: beside(measured)}


def verdict(codes: Sequence[int]) -> int:
    """The code of all: a failure says more than something NOT RUN."""
    failed = any(code not in (0, 3) for code in codes)
    return 1 if failed else 3 if 3 in codes else 0


def main(arguments: Sequence[str] | None = None, root: Path = Path("/")) -> int:
    parser = argparse.ArgumentParser(description="the suite for a machine with a GPU")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks", metavar="DIR")
    parser.add_argument("--quick", action="store_true", help="few rounds, to try the code")
    given = parser.parse_args(arguments)
    found = [node for node in NODES if (root / node).exists()]
    if not found:
        print("device tests NOT RUN: no accelerator on this machine", file=sys.stderr)
        return 3
    print(f"accelerator: {', '.join('/' + node for node in found)}", flush=True)
    codes = suite(given.out.absolute(), given.quick)
    for step, code in codes.items():
        print(f"{step:<26}{VERDICTS.get(code, 'FAILED')}")
    return verdict(list(codes.values()))


if __name__ == "__main__":
    sys.exit(main())
