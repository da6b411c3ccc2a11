"""`bedplate standards`: the engineering standards as gates over a tree."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.cli.flags import common_flags
from bedplate.cli.output import at_work, print_json, print_table, print_term
from bedplate.core.errors import EXIT_DONE, EXIT_ENVIRONMENT, EXIT_FAILED

if TYPE_CHECKING:
    from argparse import _SubParsersAction
    from collections.abc import Sequence

    from bedplate.core.gates import Gate


def register(verbs: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `standards` and its verb."""
    parser = verbs.add_parser("standards", help="check a source tree against the standards")
    inner = parser.add_subparsers(
        title="verbs", metavar="VERB", dest="standards_verb", required=True
    )
    verb = inner.add_parser(
        "check", help="run every gate that applies to a tree", parents=[common_flags()]
    )
    verb.add_argument("tree", nargs="?", default=".", metavar="TREE", help="default: here")
    verb.add_argument(
        "--gate", action="append", metavar="NAME", help="this gate alone; again for more"
    )
    verb.set_defaults(run=check)


def gates() -> Sequence[Gate]:
    """Every gate of this build; each system brings its own."""
    from bedplate.runtime.api import RuntimeContract
    from bedplate.serving.api import SteadyState

    return RuntimeContract(), SteadyState()


def check(arguments: argparse.Namespace) -> int:
    """A table of verdicts, then the findings; 1 when one failed, else 3 when one was not run."""
    from bedplate.cli.progress import waiting
    from bedplate.standards.api import check as run

    with waiting(at_work(arguments)) as say:
        report = run(
            Path(arguments.tree), gates(), arguments.gate or (), lambda name: say(f"gate {name}")
        )
    code = EXIT_ENVIRONMENT if report.is_incomplete else EXIT_DONE
    if report.failed:
        code = EXIT_FAILED
    if arguments.json:
        print_json(report)
        return code
    rows = [
        (
            verdict.result.gate,
            verdict.result.verdict.replace("_", " ").upper(),
            verdict.incident or "names no incident: a candidate for deletion",
        )
        for verdict in report.verdicts
    ]
    print_table(("gate", "verdict", "prevents"), rows)
    for verdict in report.verdicts:
        result = verdict.result
        if result.reason:
            print_term(f"{result.gate}:", result.reason)
        for found in result.findings:
            where = found.path if found.line is None else f"{found.path}:{found.line}"
            print_term(where, f"{found.message}; {found.remedy}")
    return code
