"""`bedplate status`: what runs, how it is, and what it is doing."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bedplate.cli.flags import common_flags
from bedplate.cli.output import print_json, print_table
from bedplate.core.errors import EXIT_DONE, EXIT_FAILED
from bedplate.core.units import NS_PER_S, format_bytes, format_duration_ns

if TYPE_CHECKING:
    from bedplate.orchestrator.api import EngineLoad

_LAST_WORDS = 3  # lines of a part that does not start


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

    status = Platform.find(arguments.data_dir).status()
    children = status["children"]
    well = bool(children) and all(child["state"] == "ready" for child in children)
    if arguments.json:
        print_json(status)
    else:
        show(status)
    return EXIT_DONE if well else EXIT_FAILED


def show(status: dict[str, Any]) -> None:
    """The status for people."""
    up = format_duration_ns(since(status["started_ns"]))
    print(f"{status['model']} at {status['url']}/v1, up for {up}")
    columns = ["part", "state", "since", "pid", "memory", "restarts", "last end"]
    print_table(columns, [row(child) for child in status["children"]])
    if status["engine"] is None:
        print(f"engine: {status['engine_reason']}")
    else:
        for line in load_lines(status["engine"]):
            print(line)
    for child in status["children"]:
        if child["state"] != "ready" and child["last_words"]:
            print(f"\nthe {child['name']} said last:")
            for line in child["last_words"].splitlines()[-_LAST_WORDS:]:
                print(f"  {line}")


def row(child: dict[str, Any]) -> tuple[object, ...]:
    """One part of the platform."""
    memory = child["memory_bytes"]
    return (
        child["name"],
        child["state"],
        format_duration_ns(since(child["since_ns"])),
        child["pid"] or "-",
        "-" if memory is None else format_bytes(memory),
        child["restarts"],
        child["last_end"] or "-",
    )


def load_lines(load: EngineLoad) -> Iterator[str]:
    """What the engine is doing, a line a subject."""
    share = load.blocks_used / load.blocks_total if load.blocks_total else 0.0
    yield (
        f"requests  {load.running} running, {load.waiting} waiting, {load.finished:,} done, "
        f"{load.cancelled:,} cancelled, {load.refused:,} refused, {load.failed:,} failed"
    )
    yield (
        f"KV blocks {load.blocks_used:,} of {load.blocks_total:,} used ({share:.1%}), "
        f"{load.blocks_cached:,} kept for sharing, {load.preemptions:,} preemptions"
    )
    yield (
        f"tokens    {load.tokens_read:,} read, {load.tokens_written:,} written, "
        f"{load.tokens_per_second:.0f} tokens/s now"
    )
    if load.last_step_ns is None:
        yield "progress  no step yet"
    else:
        yield f"progress  last step {format_duration_ns(since(load.last_step_ns))} ago"


def since(time_ns: int) -> int:
    """Nanoseconds from a Unix time until now, in whole seconds beyond one; never negative."""
    passed = max(0, time.time_ns() - time_ns)
    return passed if passed < NS_PER_S else passed // NS_PER_S * NS_PER_S
