"""`bedplate status`: what runs, how it is, and what it is doing."""

from __future__ import annotations

import argparse

from bedplate.cli.flags import common_flags
from bedplate.cli.output import print_json, print_table
from bedplate.core.errors import EXIT_DONE, EXIT_FAILED


def register(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    verb = verbs.add_parser(
        "status",
        parents=[common_flags()],
        help="what runs on this machine, and how it is",
        description="Exit 0 when every part is ready, 1 when one is not, 3 when nothing runs.",
    )
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show the parts of the platform."""
    from bedplate.orchestrator.api import Platform

    plate = Platform.find(arguments.data_dir)
    status = plate.status()
    children = status["children"]
    well = bool(children) and all(child["state"] == "ready" for child in children)
    if arguments.json:
        print_json(status)
    else:
        rows = [
            (c["name"], c["state"], c["pid"] or "", c["restarts"], c["reason"]) for c in children
        ]
        print(f"{plate.model} at {plate.base_url}")
        print_table(["part", "state", "pid", "restarts", "reason"], rows)
    return EXIT_DONE if well else EXIT_FAILED
