"""From results to verdicts: what a capability is worth, and what is expected to fail."""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from bedplate.core.errors import EXIT_DONE, EXIT_ENVIRONMENT, EXIT_FAILED
from bedplate.hal.errors import InvalidArgument
from bedplate.hal.suite.registry import CAPABILITIES, MANDATORY, Case, all_cases
from bedplate.hal.suite.run import CaseResult


@dataclass(frozen=True, slots=True)
class CapabilityVerdict:
    """Counts as `passed/run`; `verdict` is certified, withdrawn, not_claimed or not_run."""

    claimed: bool
    positive: str
    negative: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Expected:
    """A failure that is known: of which case on which backend, why, and until when."""

    backend: str
    case: str
    reason: str
    expires: datetime.date


def load_expected(text: str | None = None) -> list[Expected]:
    """The known failures, by default those of `expected.toml`.

    Raises InvalidArgument for an entry without a reason or a date.
    """
    if text is None:
        text = resources.files("bedplate.hal.suite").joinpath("expected.toml").read_text()
    found = []
    for entry in tomllib.loads(text).get("expected", ()):
        known = {"backend": str, "case": str, "reason": str, "expires": datetime.date}
        for key, kind in known.items():
            if not isinstance(entry.get(key), kind) or not entry[key]:
                raise InvalidArgument(f"an expected failure has no {key}: {entry}")
        found.append(Expected(**{key: entry[key] for key in known}))
    return found


def problems(
    backend: str,
    results: Sequence[CaseResult],
    expected: Iterable[Expected] = (),
    today: datetime.date | None = None,
) -> list[str]:
    """What makes the run fail, one sentence each; empty is a pass.

    A failure that is expected is none. An entry must still fail: one whose
    date has passed, a case that passes or could not be tried, and a case that
    the suite does not have are problems.
    """
    day = today or datetime.datetime.now(datetime.UTC).date()
    known = {entry.case: entry for entry in expected if entry.backend == backend}
    names = {result.name for result in results} | set(all_cases())
    found = [
        f"{name}: expected to fail, but there is no such case" for name in known.keys() - names
    ]
    for result in results:
        entry = known.get(result.name)
        if entry and day > entry.expires:
            found.append(f"{result.name}: expected to fail until {entry.expires}, which is over")
        elif entry and result.verdict == "pass":
            found.append(f"{result.name}: passes, but was expected to fail: {entry.reason}")
        elif entry and result.verdict == "not_run":
            found.append(f"{result.name}: expected to fail, but was NOT RUN: {result.reason}")
        elif result.verdict == "fail" and not entry:
            found.append(f"{result.name}: {result.reason}")
    return found


def verdicts(
    claims: frozenset[str], cases: Sequence[Case], results: Sequence[CaseResult]
) -> dict[str, CapabilityVerdict]:
    """The verdict on every capability.

    certified: claimed, nothing failed, something of each polarity passed, and
    one of the essential cases where there are some. withdrawn: claimed and
    something failed. not_run: claimed, but it could not be shown.
    """
    by_name = {result.name: result for result in results}
    return {
        capability: _verdict(
            capability in MANDATORY or capability in claims,
            [c for c in cases if c.capability == capability and c.name in by_name],
            by_name,
        )
        for capability in CAPABILITIES
    }


def _verdict(
    claimed: bool, cases: Sequence[Case], by_name: Mapping[str, CaseResult]
) -> CapabilityVerdict:
    def count(*polarities: str) -> tuple[int, int]:
        found = [by_name[c.name].verdict for c in cases if c.polarity in polarities]
        return found.count("pass"), len(found) - found.count("not_run")

    positive, negative = count("positive"), count("negative", "absent")
    failed = any(by_name[c.name].verdict == "fail" for c in cases)
    essential = [by_name[c.name].verdict for c in cases if c.essential]
    shown = positive[0] > 0 and negative[0] > 0 and (not essential or "pass" in essential)
    if not claimed:
        verdict = "not_claimed"
    elif failed:
        verdict = "withdrawn"
    else:
        verdict = "certified" if shown else "not_run"
    text = tuple(f"{passed}/{run}" for passed, run in (positive, negative))
    return CapabilityVerdict(claimed, text[0], text[1], verdict)


def summary(capabilities: Mapping[str, CapabilityVerdict]) -> dict[str, list[str]]:
    """Names by what became of them.

    claimed: what the device says, mandatory tables included; tested: of those,
    where any case ran; then the verdicts. A claim is in claimed and in exactly
    one of certified, withdrawn and not_run.
    """

    def ran(entry: CapabilityVerdict) -> bool:
        return any(not text.endswith("/0") for text in (entry.positive, entry.negative))

    named = {
        "claimed": [name for name, entry in capabilities.items() if entry.claimed],
        "tested": [name for name, entry in capabilities.items() if entry.claimed and ran(entry)],
    }
    for verdict in ("certified", "withdrawn", "not_run", "not_claimed"):
        named[verdict] = [n for n, entry in capabilities.items() if entry.verdict == verdict]
    return named


def certified(capabilities: Mapping[str, Any]) -> frozenset[str]:
    """The optional capabilities of a certificate that may be relied on."""
    return frozenset(
        name for name, entry in capabilities.items() if entry["verdict"] == "certified"
    ) - frozenset(MANDATORY)


def exit_code(found: Sequence[str], capabilities: Mapping[str, CapabilityVerdict]) -> int:
    """1 with a problem, 3 when a claim could not be shown, else 0."""
    if found:
        return EXIT_FAILED
    if any(entry.claimed and entry.verdict == "not_run" for entry in capabilities.values()):
        return EXIT_ENVIRONMENT
    return EXIT_DONE
