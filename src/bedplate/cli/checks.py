"""The checks of `bedplate simt run --check`: flags, words, files and the exit code."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedplate.cli.output import note
from bedplate.core import files
from bedplate.core.errors import EXIT_DONE, UsageError

if TYPE_CHECKING:
    from bedplate.simt.api import Checked, Kernel, Request

FORMATS = (".json", ".sarif", ".xml")


def add_flags(verb: argparse.ArgumentParser) -> None:
    """Add the flags to `simt run`."""
    verb.add_argument("--check", metavar="LIST", help="of memory, race, sync, init; or all")
    verb.add_argument(
        "--error-exitcode",
        type=int,
        default=0,
        metavar="N",
        help="exit code when checks found an error or a warning; default: 0",
    )
    verb.add_argument(
        "--check-report",
        metavar="FILE",
        help="write what was found as .json, .sarif, or JUnit's .xml",
    )


def run(
    arguments: argparse.Namespace, kernel: Kernel, request: Request, values: list[Any]
) -> tuple[Any, int]:
    """Run the launch under checks; the document, and the exit code."""
    from bedplate.simt.api import check, checks_of

    path = Path(arguments.check_report) if arguments.check_report else None
    if path is not None and path.suffix not in FORMATS:
        raise UsageError(f"{path} ends in none of {', '.join(FORMATS)}")
    wanted = checks_of(arguments.check)
    checked = check(
        kernel,
        request.grid,
        request.block,
        values,
        checks=wanted,
        dynamic_shared=request.shared,
    )
    if path is not None:
        files.replace(path, _written(path.suffix, kernel.name, wanted, checked).encode())
    _print(arguments, checked)
    code = arguments.error_exitcode if checked.bad else EXIT_DONE
    return checked.document(kernel.name), code or (1 if checked.failure else EXIT_DONE)


def _written(suffix: str, kernel: str, wanted: Any, checked: Checked) -> str:
    from bedplate.simt.api import check_junit, check_sarif

    if suffix == ".xml":
        return check_junit(kernel, wanted, checked.findings)
    if suffix == ".sarif":
        return json.dumps(check_sarif(checked.findings), indent=1) + "\n"
    return json.dumps(checked.document(kernel), indent=1) + "\n"


def _print(arguments: argparse.Namespace, checked: Checked) -> None:
    for finding in checked.findings:
        for line in finding.lines():
            note(arguments, line)
    if checked.failure is not None:
        note(arguments, f"========= {checked.failure}")
    note(arguments, checked.summary)
