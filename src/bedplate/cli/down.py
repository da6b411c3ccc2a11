"""`bedplate down`: stop the platform of this data directory."""

from __future__ import annotations

import argparse

from bedplate.cli.flags import common_flags
from bedplate.core.errors import EXIT_DONE


def register(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    verb = verbs.add_parser(
        "down",
        parents=[common_flags()],
        help="stop the platform",
        description="Stop the platform; streams that are open may end first.",
    )
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Stop it; fine when nothing runs."""
    from bedplate.orchestrator.api import NotRunning, Platform

    try:
        plate = Platform.find(arguments.data_dir)
    except NotRunning as error:
        print(error.message)
        return EXIT_DONE
    plate.down()
    print(f"stopped {plate.model} at {plate.base_url}")
    return EXIT_DONE
