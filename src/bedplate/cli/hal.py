"""`bedplate hal`: backends, why one is missing, whether one is honest, and what it costs."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedplate.cli.flags import common_flags
from bedplate.cli.output import print_json, print_table, print_term
from bedplate.core import files
from bedplate.core.command import quoted
from bedplate.core.errors import EXIT_DONE, EXIT_ENVIRONMENT, EXIT_FAILED, UsageError
from bedplate.core.units import format_quantity

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from bedplate.core.measurement import Measurement
    from bedplate.hal.api import CaseResult, DeviceInfo, DeviceReport, ListedBackend

BACKEND = "a name of `hal list`, or the absolute path of a manifest"
LEGEND = "none yet: made at the first open; quick: made there; full: every case, by"


def register(verbs: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `hal` and its verbs."""
    parser = verbs.add_parser("hal", help="backends: list, examine, certify, measure, start one")
    inner = parser.add_subparsers(title="verbs", metavar="VERB", dest="hal_verb", required=True)
    for name, run, text in (
        ("list", list_backends, "backends, devices, and the reason when one cannot be used"),
        ("doctor", doctor, "every candidate file: taken or refused, and why"),
    ):
        verb = inner.add_parser(name, help=text, parents=[common_flags()])
        verb.add_argument("--safe", action="store_true", help="look at our own backends only")
        verb.set_defaults(run=run)
    verb = inner.add_parser(
        "conform", help="test what a backend claims and certify it", parents=[common_flags()]
    )
    verb.add_argument("backend", metavar="BACKEND[:INDEX]", help=f"{BACKEND}; without an index all")
    verb.add_argument(
        "--tier",
        choices=("quick", "full", "performance"),
        default="full",
        help="quick: without the long cases; performance: full, and what bench measures; "
        "default: full",
    )
    verb.add_argument(
        "--lie", metavar="NAME|N", help="only the device of liar or shuffle that tells this lie"
    )
    verb.add_argument(
        "--seed", metavar="U64", help="of liar's places and shuffle's order; default: 1"
    )
    verb.add_argument(
        "--explain",
        metavar="CASE",
        help="run nothing: say what a case checks and how a backend fails it; queue.* is all of it",
    )
    verb.add_argument("-o", "--out", metavar="FILE", help="write the certificates here too")
    verb.add_argument("--junit", metavar="FILE", help="write the cases as JUnit XML")
    # The other end of the suite's pipe: case names on stdin, results on stdout.
    verb.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    verb.add_argument(
        "--provider",
        action="append",
        default=[],
        metavar="NAME=MODULE:FUNCTION",
        help="register a machine in Python for an in-process backend",
    )
    verb.set_defaults(run=conform)
    verb = inner.add_parser(
        "bench", help="what a device costs: calls, launches, bandwidth", parents=[common_flags()]
    )
    verb.add_argument("backend", metavar="BACKEND[:INDEX]", help=f"{BACKEND}; without an index 0")
    verb.add_argument("--rounds", type=int, default=30, help="of each quantity; default: 30")
    verb.add_argument("--seed", metavar="U64", help="of the order of rounds; default: random")
    verb.add_argument("-o", "--out", metavar="FILE", help="add the measurements to this file")
    verb.set_defaults(run=bench)
    verb = inner.add_parser(
        "new", help="start a backend of your own: source and Makefile", parents=[common_flags()]
    )
    verb.add_argument("name", metavar="NAME", help="lower-case letters, digits and _")
    verb.add_argument("-o", "--out", metavar="DIR", help="a new folder; default: ./NAME")
    verb.set_defaults(run=new)


def list_backends(arguments: argparse.Namespace) -> int:
    """Exit 0 when some backend can be used, 3 when none can."""
    from bedplate.hal.api import listing

    backends = listing(safe=arguments.safe)
    if arguments.json:
        print_json({"schema": "bedplate.hal-list/1", "backends": backends})
    else:
        _print_backends(backends)
    return EXIT_DONE if any(backend.devices for backend in backends) else EXIT_ENVIRONMENT


def _print_backends(backends: Sequence[ListedBackend]) -> None:
    """A short table, then what does not fit in a column: capabilities, reasons, a legend."""
    rows: list[tuple[object, ...]] = []
    told: list[tuple[str, str]] = []
    for backend in backends:
        for device in backend.devices:
            gibibytes = f"{device['memory_bytes'] / 2**30:.1f} GiB"
            certificate = device["certificate"]
            tier = certificate["tier"] if certificate else "none yet"
            rows.append((device["id"], backend.abi, device["name"], gibibytes, tier))
            told += [(device["id"], words) for words in _certificate_words(certificate)]
        if backend.reason:
            rows.append((backend.name, "-", "-", "-", "unusable"))
            told.append((backend.name, f"unusable: {backend.reason}"))
    print_table(("device", "abi", "name", "memory", "certificate"), rows)
    legend = ("certificate", f"{LEGEND} {quoted('hal conform BACKEND')}")
    for term, text in [legend, *told]:
        print_term(term, text)


def _certificate_words(certificate: dict[str, Any] | None) -> Iterator[str]:
    for verdict in ("certified", "withdrawn", "not_run"):
        if certificate is not None and certificate[verdict]:
            yield f"{verdict.replace('_', ' ')}: {' '.join(certificate[verdict])}"


def doctor(arguments: argparse.Namespace) -> int:
    """Exit 0 when every candidate is taken, 1 when one is refused, 3 without any."""
    from bedplate.hal.api import examine, opencl_registrations

    # Before any platform's library is opened: what would be.
    registered = opencl_registrations()
    findings = examine(safe=arguments.safe)
    if arguments.json:
        document = {"candidates": findings, "opencl_registrations": registered}
        print_json({"schema": "bedplate.hal-doctor/1", **document})
    else:
        rows = [
            (f.verdict, f.backend or "-", str(f.path), f.origin, f.reason or "") for f in findings
        ]
        print_table(("verdict", "backend", "file", "found by", "reason"), rows)
        if registered:
            print_table(
                ("OpenCL loader", "library", "file", "found by", "reason"),
                [
                    (r.verdict, r.library or "-", str(r.path), r.origin, r.reason or "")
                    for r in registered
                ],
            )
    if not findings:
        return EXIT_ENVIRONMENT
    return EXIT_FAILED if any(f.verdict == "refused" for f in findings) else EXIT_DONE


def conform(arguments: argparse.Namespace) -> int:
    """Exit 0 certified, 1 when a case fails, as every lie of liar, 3 when a claim is NOT RUN."""
    from bedplate.core.seeds import choose
    from bedplate.hal.api import (
        conform_backend,
        conform_exit_code,
        conform_junit,
        liar_index,
        parse_spec,
        register_origin,
        seed_liars,
        serve_cases,
    )
    from bedplate.kernels.api import ReferenceOracle

    for origin in arguments.provider:
        register_origin(origin)
    if arguments.worker:
        return serve_cases(arguments.backend, ReferenceOracle())
    spec = parse_spec(arguments.backend)
    index = spec.index if arguments.backend != spec.backend else None
    if arguments.seed is not None:
        seed_liars(choose(arguments.seed))
    if arguments.lie is not None:
        index = liar_index(spec.backend, arguments.lie)
    if arguments.explain is not None:
        return _explain(spec.backend, index, arguments)
    with _progress(arguments.json) as told:
        reports = conform_backend(spec.backend, index, tier=arguments.tier, progress=told)
    certificates = [report.certificate for report in reports]
    document = certificates[0] if len(certificates) == 1 else certificates
    if arguments.out:
        files.replace(Path(arguments.out), json.dumps(document, indent=1) + "\n")
    if arguments.junit:
        files.replace(Path(arguments.junit), conform_junit(certificates))
    if arguments.json:
        print_json(document)
    else:
        for report in reports:
            _print_report(report)
        if any(report.problems and report.lie is None for report in reports):
            words = ["hal", "conform", arguments.backend, "--explain", "CASE"]
            print(f"why one fails: {quoted(words)}")
    if arguments.seed is not None:
        print(f"seed {choose(arguments.seed)}", file=sys.stderr)
    return conform_exit_code(reports)


def _explain(backend: str, index: int | None, arguments: argparse.Namespace) -> int:
    from bedplate.hal.api import explain_cases

    found = explain_cases(backend, index, arguments.explain)
    if arguments.json:
        print_json({"schema": "bedplate.hal-cases/1", "cases": found})
        return EXIT_DONE
    for one in found:
        print(f"{one.name}  ({one.polarity}, {one.tier} tier)")
        print_term("checks", one.checks)
        for failure in one.fails_when:
            print_term("fails when", failure)
        if one.needs:
            print_term("NOT RUN without", " ".join(one.needs))
        print_term("faced by", " ".join(one.faced_by) or f"no device of {backend}")
    return EXIT_DONE


def bench(arguments: argparse.Namespace) -> int:
    """Exit 0 measured, 2 for a wrong device or number, 3 when a quantity is NOT RUN."""
    from bedplate.core.measurement import store
    from bedplate.core.seeds import choose
    from bedplate.hal.api import BENCH_QUANTITIES, bench_device, open_device

    if arguments.rounds < 1:
        raise UsageError(f"{arguments.rounds} rounds", remedy="ask for at least 1")
    seed = choose(arguments.seed)
    with open_device(arguments.backend) as device:
        measurements = bench_device(device, rounds=arguments.rounds, seed=seed)
    if arguments.out:
        store(Path(arguments.out), measurements)
    if arguments.json:
        results = [measurement.to_json() for measurement in measurements]
        explained = {one.name: BENCH_QUANTITIES[one.name] for one in measurements}
        print_json(
            {"schema": "bedplate.measurements/1", "quantities": explained, "results": results}
        )
    else:
        _print_measurements(measurements)
        print(f"seed {seed}; medians of {arguments.rounds} rounds")
    lacking = any(measurement.status != "ok" for measurement in measurements)
    return EXIT_ENVIRONMENT if lacking else EXIT_DONE


def _print_measurements(measurements: Sequence[Measurement]) -> None:
    rows = []
    for one in measurements:
        peer, ratio = "-", "-"
        if one.status != "ok" or one.p50 is None:
            rows.append((one.name, "NOT RUN", peer, one.reason))
            continue
        if one.peer is not None and one.ratio is not None:
            peer = f"{one.peer.name} {format_quantity(one.peer.p50, one.unit)}"
            ratio = f"{one.ratio:.2f}"
        rows.append((one.name, format_quantity(one.p50, one.unit), peer, ratio))
    print_table(("quantity", "median", "beside", "ratio, above 1 is better"), rows)


def new(arguments: argparse.Namespace) -> int:
    """Exit 0 written, 2 for a wrong name or a folder that is not empty."""
    from bedplate.hal.api import new_backend

    folder = Path(arguments.out or arguments.name)
    made = new_backend(arguments.name, folder)
    if arguments.json:
        print_json({"schema": "bedplate.hal-new/1", "files": made})
        return EXIT_DONE
    for path in made:
        print(path)
    manifest = folder.absolute() / f"{arguments.name}.json"
    print(f"build it with: make -C {folder}; test it with: bedplate hal conform {manifest}")
    return EXIT_DONE


def _print_report(report: DeviceReport) -> None:
    counts = report.counts()
    print(
        f"{report.info.id}  {counts['pass']} passed, {counts['fail']} failed, "
        f"{counts['not_run']} NOT RUN  ({report.info.name})"
    )
    if report.lie is not None:
        caught = f"caught by {report.caught_by}" if report.caught_by else "NOT CAUGHT, a suite bug"
        print(f"  lie {report.lie}: {caught}")
        return
    words = {"not_run": "claims NOT RUN", "not_claimed": "not claimed"}
    for group, names in report.certificate["summary"].items():
        if names or group != "withdrawn":
            print(f"  {words.get(group, group)}: {' '.join(names) or 'none'}")
    for problem in report.problems:
        print(f"  FAIL {problem}")
    for case in report.certificate["cases"]:
        if case["verdict"] == "not_run":
            print(f"  NOT RUN {case['name']}: {case['reason']}")


@contextlib.contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[DeviceInfo, int, CaseResult], None] | None]:
    """A bar on stderr when someone looks at it."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def told(info: DeviceInfo, cases: int, result: CaseResult) -> None:
            if info.id not in tasks:
                tasks[info.id] = bar.add_task(info.id, total=cases)
            bar.advance(tasks[info.id])

        yield told
