"""`bedplate memory`: what allocators make of a recorded trace."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedplate.cli.flags import common_flags
from bedplate.cli.output import at_work, note, print_json, print_table, shown
from bedplate.core import files
from bedplate.core.errors import EXIT_DONE, EXIT_FAILED, UsageError
from bedplate.core.units import format_bytes, parse_bytes

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from bedplate.runtime.api import Job, Outcome, Trace

MOST_LINES = 20
TRACE = "RMM's CSV, a .bpt log or a PyTorch snapshot; .xz and .gz are read too"


def register(verbs: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `memory` and its verbs."""
    parser = verbs.add_parser("memory", help="replay, plan and draw traces of device memory")
    inner = parser.add_subparsers(title="verbs", metavar="VERB", dest="memory_verb", required=True)
    verb = inner.add_parser(
        "replay", help="what policies would have held for a trace", parents=[common_flags()]
    )
    verb.add_argument("trace", metavar="TRACE", help=TRACE)
    verb.add_argument(
        "--policy",
        action="append",
        metavar="NAME",
        help="bedplate, bedplate-noremap, planned, pytorch, rmm, best-fit, buddy, slab, or a "
        "library of yours; again for more; default: bedplate and pytorch",
    )
    _capacity(verb)
    verb.add_argument(
        "--sanitize",
        action="store_true",
        help="look for memory given out while a stream may still work on it; exit 1 when there is",
    )
    verb.add_argument(
        "--explain",
        action="store_true",
        help="say why the first request does not fit in --capacity; exit 1 when one does not",
    )
    verb.set_defaults(run=replay)
    verb = inner.add_parser(
        "plan", help="place a trace with its lifetimes known", parents=[common_flags()]
    )
    verb.add_argument("trace", metavar="TRACE", help=TRACE)
    verb.add_argument("-o", "--out", metavar="FILE", help="write the offsets here, as JSON")
    verb.set_defaults(run=plan)
    verb = inner.add_parser(
        "show", help="draw address over time, here or as a page", parents=[common_flags()]
    )
    verb.add_argument("trace", metavar="TRACE", help=TRACE)
    verb.add_argument("--policy", default="bedplate", metavar="NAME", help="default: bedplate")
    _capacity(verb)
    verb.add_argument("--html", metavar="FILE", help="write a page that opens in any browser")
    verb.set_defaults(run=show)
    verb = inner.add_parser(
        "convert", help="write a trace in another form", parents=[common_flags()]
    )
    verb.add_argument("trace", metavar="TRACE", help=TRACE)
    verb.add_argument("out", metavar="OUT", help="ends in .csv (RMM's columns) or .bpt")
    verb.set_defaults(run=convert)
    verb = inner.add_parser(
        "make", help="write a small trace by seed, to try policies on", parents=[common_flags()]
    )
    verb.add_argument("kind", metavar="KIND", help="training, serving or streams")
    verb.add_argument("out", metavar="OUT", help="ends in .csv (RMM's columns) or .bpt")
    verb.add_argument("--seed", help="the same one makes the same trace; default: random")
    verb.add_argument("--records", type=int, default=4000, help="about so many; default: 4000")
    verb.add_argument(
        "--forget", type=float, default=0.0, help="the part of uses that `streams` does not tell"
    )
    verb.set_defaults(run=make)


def _capacity(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--capacity", metavar="SIZE", help="of the device; default: no end")


def _capacity_bytes(arguments: argparse.Namespace) -> int:
    return parse_bytes(arguments.capacity) if arguments.capacity else 1 << 62


def _load(arguments: argparse.Namespace) -> Trace:
    from bedplate.cli.progress import waiting
    from bedplate.runtime.api import load_trace

    left_out: list[str] = []
    with waiting(at_work(arguments)) as say:
        say(f"reading {arguments.trace}")
        trace = load_trace(arguments.trace, left_out.append)
    for text in left_out:
        print(shown(text), file=sys.stderr)
    if not len(trace):
        raise UsageError(f"{arguments.trace} holds no request", remedy="record a job into it")
    return trace


def replay(arguments: argparse.Namespace) -> int:
    """A table: live, reserved, their ratio, failures and driver calls of each policy."""
    from bedplate.cli.progress import waiting
    from bedplate.runtime.api import POLICIES, find_job
    from bedplate.runtime.api import replay as run

    names = arguments.policy or ["bedplate", "pytorch"][: 1 if arguments.sanitize else 2]
    for name in names:
        _known(name, POLICIES)
    if arguments.sanitize and arguments.explain:
        raise UsageError(
            "--sanitize has no end of memory and --explain needs one", remedy="give one of them"
        )
    if arguments.sanitize:
        return _sanitize(arguments, names)
    if arguments.explain:
        return _explain(arguments)
    capacity = _capacity_bytes(arguments)
    trace = _load(arguments)
    job = find_job(arguments.trace)
    outcomes = []
    with waiting(at_work(arguments)) as say:
        for name in names:
            say(f"replaying {len(trace):,} records by {name}")
            peak = job.peak_reserved_bytes if job else None
            outcomes.append(run(trace, name, capacity_bytes=capacity, recorded_peak_bytes=peak))
    if arguments.json:
        print_json([_row(outcome) for outcome in outcomes])
        return EXIT_DONE
    columns = ("policy", "live", "reserved", "ratio", "failed", "driver calls", "")
    rows = [
        (
            outcome.policy,
            format_bytes(outcome.live_peak_bytes),
            format_bytes(outcome.reserved_peak_bytes),
            f"{outcome.ratio:.3f}" if outcome.live_peak_bytes else "-",
            f"{outcome.out_of_memory:,}",
            f"{outcome.driver_calls:,}",
            outcome.note,
        )
        for outcome in outcomes
    ]
    if job and job.what:
        print(shown(job.what))
    print_table(columns, rows)
    if any(outcome.note for outcome in outcomes):
        note(arguments, _how_to_validate(arguments.trace, job))
    if job and job.peak_reserved_bytes:
        note(
            arguments,
            f"recorded on {job.device}, PyTorch {job.torch}: "
            f"{format_bytes(job.peak_reserved_bytes)} reserved, "
            f"{format_bytes(job.peak_reserved_expandable_bytes)} with expandable segments",
        )
    return EXIT_DONE


def _how_to_validate(trace: str, job: Job | None) -> str:
    """What makes a model's row more than a model's word."""
    if job and job.peak_reserved_bytes:
        return (
            "MODEL NOT VALIDATED: its peak is more than 1 % from the recorded "
            f"{format_bytes(job.peak_reserved_bytes)}; it says nothing of this job"
        )
    name = Path(trace).name.partition(".")[0]
    return (
        "MODEL NOT VALIDATED: to compare with the recording, put jobs.json beside the trace: "
        f'[{{"job": "{name}", "peak_reserved_bytes": N}}] with N from '
        "torch.cuda.max_memory_reserved() of the recorded job"
    )


def _sanitize(arguments: argparse.Namespace, names: list[str]) -> int:
    """What is reused too early under each policy, a line each; 1 when there is any."""
    from bedplate.cli.progress import waiting
    from bedplate.runtime.api import Reuse, sanitize

    if arguments.capacity:
        raise UsageError("a sanitized replay has no end of memory", remedy="leave out --capacity")
    trace = _load(arguments)
    found: dict[str, list[Reuse]] = {}
    with waiting(at_work(arguments)) as say:
        for name in names:
            say(f"looking at {len(trace):,} records under {name}")
            found[name] = sanitize(trace, name)
    if arguments.json:
        print_json(
            [
                {"policy": name, "unsafe": [dataclasses.asdict(reuse) for reuse in reuses]}
                for name, reuses in found.items()
            ]
        )
    else:
        for name, reuses in found.items():
            print(f"{name}: {len(reuses):,} unsafe in {len(trace):,} records")
            for reuse in reuses[:MOST_LINES]:
                print(f"  {reuse}")
            if len(reuses) > MOST_LINES:
                print(f"  and {len(reuses) - MOST_LINES:,} more; --json has all")
    return EXIT_FAILED if any(found.values()) else EXIT_DONE


def _explain(arguments: argparse.Namespace) -> int:
    """The first request that does not fit, what there was, and what lay where; 1 when there is."""
    from bedplate.runtime.api import explain

    if not arguments.capacity:
        raise UsageError("without an end of memory all fits", remedy="give --capacity")
    policy, *others = arguments.policy or ["bedplate"]
    if others:
        raise UsageError("one policy at a time says why", remedy="give --policy once")
    trace = _load(arguments)
    why = explain(trace, capacity_bytes=_capacity_bytes(arguments), policy=policy)
    if arguments.json:
        print_json(dataclasses.asdict(why) if why else None)
    else:
        print(why.text if why else f"all {len(trace):,} records fit")
    return EXIT_FAILED if why else EXIT_DONE


def _known(name: str, policies: tuple[str, ...]) -> None:
    from bedplate.core import nearest

    if name not in policies and "/" not in name and not name.endswith(".so"):
        raise UsageError(f"unknown policy {name!r}", remedy=nearest.hint(name, set(policies)))


def _row(outcome: Outcome) -> dict[str, Any]:
    return {
        "policy": outcome.policy,
        "live_peak_bytes": outcome.live_peak_bytes,
        "reserved_peak_bytes": outcome.reserved_peak_bytes,
        "reserved_end_bytes": outcome.reserved_end_bytes,
        "ratio": round(outcome.ratio, 6),
        "requests": outcome.requests,
        "out_of_memory": outcome.out_of_memory,
        "driver_calls": outcome.driver_calls,
        "note": outcome.note,
    }


def plan(arguments: argparse.Namespace) -> int:
    """The size of an offline placement, and the bound below it."""
    from bedplate.cli.progress import waiting
    from bedplate.runtime.api import plan as run

    trace = _load(arguments)
    with waiting(at_work(arguments)) as say:
        say(f"planning {len(trace):,} records")
        made = run(trace)
    if arguments.out:
        import msgspec

        content = {
            "bytes": made.bytes,
            "lower_bound_bytes": made.lower_bound_bytes,
            "offsets": made.offsets.tolist(),
        }
        files.replace(Path(arguments.out), msgspec.json.encode(content))
    if arguments.json:
        print_json({"bytes": made.bytes, "lower_bound_bytes": made.lower_bound_bytes})
        return EXIT_DONE
    over = made.bytes / made.lower_bound_bytes if made.lower_bound_bytes else 1.0
    print(
        f"{len(made.offsets):,} requests fit in {format_bytes(made.bytes)}; no placement needs "
        f"less than {format_bytes(made.lower_bound_bytes)} ({over:.4f} of it)"
    )
    return EXIT_DONE


def show(arguments: argparse.Namespace) -> int:
    """The picture of a replay, in the terminal or as a page."""
    from bedplate.runtime.api import POLICIES, find_job, picture_page, picture_text
    from bedplate.runtime.api import replay as run

    _known(arguments.policy, POLICIES)
    trace = _load(arguments)
    outcome = run(trace, arguments.policy, capacity_bytes=_capacity_bytes(arguments))
    job = find_job(arguments.trace)
    if arguments.html:
        title = f"Device memory of {Path(arguments.trace).name.partition('.')[0]}"
        if job and job.what:
            title += f": {job.what}"
        files.replace(Path(arguments.html), picture_page(trace, outcome, title))
        note(arguments, f"wrote {arguments.html}")
    elif not arguments.json:
        print(picture_text(trace, outcome))
        if outcome.out_of_memory:
            note(arguments, f"{outcome.out_of_memory:,} requests did not fit and are not drawn")
    if arguments.json:
        print_json(_row(outcome))
    return EXIT_DONE


def _writer(arguments: argparse.Namespace) -> Callable[[Path, Trace], None]:
    from bedplate.runtime.api import write_csv, write_log

    writer = {".csv": write_csv, ".bpt": write_log}.get(Path(arguments.out).suffix)
    if writer is None:
        raise UsageError(
            f"{arguments.out} ends in neither .csv nor .bpt", remedy="name the form by its ending"
        )
    return writer


def convert(arguments: argparse.Namespace) -> int:
    """Write a trace as CSV or as a binary log."""
    write = _writer(arguments)
    trace = _load(arguments)
    write(Path(arguments.out), trace)
    note(arguments, f"wrote {len(trace):,} records to {arguments.out}")
    return EXIT_DONE


def make(arguments: argparse.Namespace) -> int:
    """Write a trace that a seed makes, and print the seed."""
    from bedplate.core import seeds
    from bedplate.runtime.api import workload

    write, seed = _writer(arguments), seeds.choose(arguments.seed)
    trace = workload(arguments.kind, seed=seed, records=arguments.records, forget=arguments.forget)
    write(Path(arguments.out), trace)
    if arguments.json:
        print_json({"seed": seed, "records": len(trace)})
    note(arguments, f"wrote {len(trace):,} records to {arguments.out}, seed {seed}")
    return EXIT_DONE
