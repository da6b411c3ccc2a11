"""`make check`: every rule of the house that a program can decide.

    .venv/bin/python tools/check.py [--fix] [NAME...]

Each check is a function of tools/checks/ that returns the violations it
found, one line each; all run before the exit code is decided, so one run
shows everything that is wrong. A check that cannot run here is NOT RUN with
its reason, and that is a failure too: CI has all it needs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from checks import abi, documentation, external, generated, imports, leaks, lengths, results

ROOT = Path(__file__).resolve().parent.parent
Check = Callable[[Path, bool], list[str]]
CHECKS: dict[str, Check] = {
    "format": external.ruff_format,
    "lint": external.ruff_lint,
    "types": external.mypy,
    "layers": external.import_linter,
    "imports": imports.only_api,
    "lengths": lengths.file_lengths,
    "clang-format": external.clang_format,
    "rustfmt": external.rustfmt,
    "clippy": external.clippy,
    "generated": generated.current,
    "abi": abi.append_only,
    "leaks": leaks.no_machine_facts,
    "docs": documentation.site,
    "results": results.stale_numbers,
}


def main() -> int:
    parser = argparse.ArgumentParser(description="check the rules of the house")
    parser.add_argument("--fix", action="store_true", help="repair what can be repaired")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CHECKS)}")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in CHECKS]:
        parser.error(f"no check is called {unknown[0]!r}")
    os.chdir(ROOT)
    failed = []
    for name in arguments.names or CHECKS:
        start = time.monotonic()
        violations = CHECKS[name](ROOT, arguments.fix)
        verdict = f"{len(violations)} violations" if violations else "ok"
        print(f"check {name:<13}{verdict:<15}{time.monotonic() - start:5.1f} s", flush=True)
        for violation in violations:
            print(f"  {violation}")
        if violations:
            failed.append(name)
    if failed:
        print(f"check failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
