"""`bedplate doctor`: what this machine has, what is wrong, what to do."""

from __future__ import annotations

import argparse

from bedplate.cli.flags import common_flags
from bedplate.cli.output import print_json, print_table
from bedplate.core import paths


def register(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    verb = verbs.add_parser(
        "doctor",
        parents=[common_flags()],
        help="what this machine has, what is wrong, what to do",
        description="Looks only; a device seen for the first time is tried, and its certificate "
        "kept. Exit 0 when nothing is wrong, 1 when something is, 3 when the machine lacks "
        "something.",
    )
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Examine everything; the exit code is the worst finding's."""
    from bedplate.orchestrator.api import examine

    findings = list(examine(paths.data_dir(arguments.data_dir), arguments.config))
    if arguments.json:
        checks = [
            {"check": f.check, "verdict": f.verdict, "found": f.found, "remedy": f.remedy or None}
            for f in findings
        ]
        print_json({"schema": "bedplate.doctor/1", "checks": checks})
    else:
        rows = [
            (f.verdict.value, f.check, f.found + (f"\n{f.remedy}" if f.remedy else ""))
            for f in findings
        ]
        print_table(["verdict", "check", "found, and what to do"], rows)
    return max(f.exit_code for f in findings)
