"""`bedplate hal list|doctor`: backends, and why one is missing."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from bedplate.cli.flags import common_flags
from bedplate.cli.output import print_json, print_table
from bedplate.core.errors import EXIT_DONE, EXIT_ENVIRONMENT, EXIT_FAILED

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def register(verbs: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `hal` and its verbs."""
    parser = verbs.add_parser("hal", help="backends: list them, ask why one is missing")
    inner = parser.add_subparsers(title="verbs", metavar="VERB", dest="hal_verb", required=True)
    for name, run, text in (
        ("list", list_backends, "backends, devices, and the reason when one cannot be used"),
        ("doctor", doctor, "every candidate file: taken or refused, and why"),
    ):
        verb = inner.add_parser(name, help=text, parents=[common_flags()])
        verb.add_argument("--safe", action="store_true", help="look at our own backends only")
        verb.set_defaults(run=run)


def list_backends(arguments: argparse.Namespace) -> int:
    """Exit 0 when some backend can be used, 3 when none can."""
    from bedplate.hal.api import listing

    backends = listing(safe=arguments.safe)
    if arguments.json:
        print_json({"schema": "bedplate.hal-list/1", "backends": backends})
    else:
        rows = []
        for backend in backends:
            for device in backend.devices:
                gibibytes = f"{device['memory_bytes'] / 2**30:.1f} GiB"
                names = " ".join(device["capabilities"])
                rows.append((device["id"], backend.abi, device["name"], gibibytes, names))
            if backend.reason:
                rows.append((backend.name, "-", "-", "-", f"unusable: {backend.reason}"))
        print_table(("device", "abi", "name", "memory", "capabilities"), rows)
    return EXIT_DONE if any(backend.devices for backend in backends) else EXIT_ENVIRONMENT


def doctor(arguments: argparse.Namespace) -> int:
    """Exit 0 when every candidate is taken, 1 when one is refused, 3 without any."""
    from bedplate.hal.api import examine

    findings = examine(safe=arguments.safe)
    if arguments.json:
        print_json({"schema": "bedplate.hal-doctor/1", "candidates": findings})
    else:
        rows = [
            (f.verdict, f.backend or "-", str(f.path), f.origin, f.reason or "") for f in findings
        ]
        print_table(("verdict", "backend", "file", "found by", "reason"), rows)
    if not findings:
        return EXIT_ENVIRONMENT
    return EXIT_FAILED if any(f.verdict == "refused" for f in findings) else EXIT_DONE
