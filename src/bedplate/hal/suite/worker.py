"""Runs cases in a process of its own: names come in, one JSON line each goes out.

`serve` answers every name with `{"case", "verdict", "reason", "lost"}`; `lost` says that the
device was lost, after which no other case should be asked of this process: on
some devices a fault ends all work of the process. A case that
takes the process down simply has no answer; whoever asked knows which it was.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import IO

from bedplate.core.errors import BedplateError
from bedplate.core.oracle import OpOracle
from bedplate.hal.loader import Backend
from bedplate.hal.open import load, parse_spec
from bedplate.hal.suite.registry import Case, CaseFailed, NotRun, all_cases
from bedplate.hal.suite.subject import Subject


def serve(
    spec: str,
    oracle: OpOracle | None = None,
    source: IO[str] = sys.stdin,
    sink: IO[str] | None = None,
) -> int:
    """Answer until the names end; 0. Without a `sink`: on stdout, which is then ours alone."""
    if sink is None:
        sink = _take_stdout()
    wanted = parse_spec(spec)
    backend = load(wanted.backend)
    cases = all_cases()
    for line in source:
        case = cases[line.strip()]
        verdict, reason, lost = _open_and_run(case, backend, wanted.index, oracle)
        answer = {"case": case.name, "verdict": verdict, "reason": reason, "lost": lost}
        print(json.dumps(answer), file=sink)
        sink.flush()
    return 0


def _take_stdout() -> IO[str]:
    """Our stdout under another number; what a library prints goes to stderr from now on."""
    sys.stdout.flush()
    taken = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return taken


def _open_and_run(
    case: Case, backend: Backend, index: int, oracle: OpOracle | None
) -> tuple[str, str | None, bool]:
    try:
        subject = Subject(backend, index, oracle)
    except BedplateError as error:
        return "fail", f"the device does not open: {error}", True
    try:
        return *run_case(case, subject), subject.lost()
    finally:
        subject.close()


def run_case(case: Case, subject: Subject) -> tuple[str, str | None]:
    """`pass`, `fail` or `not_run`, and why."""
    try:
        for capability in case.needs:
            subject.need(capability)
        case.body(subject)
    except NotRun as reason:
        return "not_run", str(reason)
    except CaseFailed as failure:
        return "fail", str(failure)
    except BedplateError as error:
        return "fail", f"{error.code}: {error.message}"
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return "fail", f"{type(error).__name__}: {error} ({last.name}, line {last.lineno})"
    return "pass", None
