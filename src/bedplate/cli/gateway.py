"""`bedplate gateway`: the platform's front door. Run by the supervisor, not by people."""

from __future__ import annotations

import argparse

from bedplate.cli.flags import common_flags
from bedplate.core import paths
from bedplate.core.parent import end_soon_after_parent

# The engine is gone then, so open streams end with an error event in this time.
ORPHAN_S = 0.8


def register(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb, without a line in the help of all verbs."""
    verb = verbs.add_parser("gateway", parents=[common_flags()])
    verb.add_argument("model", help="the served model's name")
    verb.add_argument("--host", required=True)
    verb.add_argument("--port", type=int, required=True)
    verb.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Answer until told to stop."""
    from bedplate.core.logging import configure
    from bedplate.orchestrator.api import run_gateway

    configure()
    if arguments.parent:
        end_soon_after_parent(arguments.parent, ORPHAN_S)
    data = paths.data_dir(arguments.data_dir)
    return run_gateway(data, arguments.model, arguments.host, arguments.port)
