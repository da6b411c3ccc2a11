"""`bedplate supervise`: keeps engine and gateway running. Started by `bedplate up`."""

from __future__ import annotations

import argparse

from bedplate.cli.flags import common_flags
from bedplate.core import paths
from bedplate.core.parent import end_with_parent


def register(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb, without a line in the help of all verbs."""
    verb = verbs.add_parser("supervise", parents=[common_flags()])
    verb.add_argument("model")
    verb.add_argument("--host", required=True)
    verb.add_argument("--port", type=int, required=True)
    verb.add_argument("--hang-after", type=float, default=10.0, metavar="SECONDS")
    verb.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    verb.add_argument("--engine-flag", action="append", default=[], help="one of `bedplate serve`")
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Supervise until told to stop."""
    from bedplate.core.logging import configure
    from bedplate.orchestrator.api import Patience, Plan, run_supervisor

    configure()
    if arguments.parent:
        end_with_parent(arguments.parent)
    data = paths.data_dir(arguments.data_dir)
    patience = Patience(hang_after_s=arguments.hang_after)
    host, port, flags = arguments.host, arguments.port, arguments.engine_flag
    return run_supervisor(Plan(data, arguments.model, host, port, flags, patience))
