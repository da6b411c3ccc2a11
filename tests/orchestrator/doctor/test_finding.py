from __future__ import annotations

from collections.abc import Iterator

from bedplate.core.errors import EnvironmentLacks, UsageError
from bedplate.orchestrator.doctor.finding import Finding, Verdict, not_run, ok, run_all


def raising(error: Exception) -> Iterator[Finding]:
    """A check that fails itself, after a first finding."""
    yield ok("first", "fine")
    raise error


def test_a_check_that_fails_stops_no_other() -> None:
    """Typed errors are problems of their kind; any other is NOT RUN, and that is not a pass."""
    findings = list(
        run_all(
            {
                "usage": lambda: raising(UsageError("x is wrong", remedy="give y")),
                "lack": lambda: raising(EnvironmentLacks("no compiler")),
                "bug": lambda: raising(ZeroDivisionError("oh")),
                "last": lambda: [ok("last", "fine")],
            }
        )
    )
    told = [(f.check, f.verdict, f.found, f.remedy, f.exit_code) for f in findings]
    assert [t for t in told if t[0] != "first"] == [
        ("usage", Verdict.PROBLEM, "x is wrong", "give y", 1),
        ("lack", Verdict.PROBLEM, "no compiler", "", 3),
        ("bug", Verdict.NOT_RUN, "ZeroDivisionError: oh", "", 3),
        ("last", Verdict.OK, "fine", "", 0),
    ]
    assert len(told) == 7


def test_only_a_required_not_run_changes_the_exit_code() -> None:
    """What nobody asked for leaves it alone."""
    assert not_run("x", "why").exit_code == 0
    assert not_run("x", "why", required=True).exit_code == 3
