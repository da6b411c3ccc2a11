"""What one look at the machine found.

A check is a function that yields findings. What it cannot find out is NOT RUN with
the reason, never OK. Looking changes and starts nothing; only the HAL may keep the
certificate of a backend that it met for the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from bedplate.core.errors import (
    EXIT_DONE,
    EXIT_ENVIRONMENT,
    EXIT_FAILED,
    BedplateError,
    EnvironmentLacks,
)


class Verdict(StrEnum):
    """OK, PROBLEM with a remedy, or NOT RUN with a reason."""

    OK = "OK"
    PROBLEM = "PROBLEM"
    NOT_RUN = "NOT RUN"


@dataclass(frozen=True)
class Finding:
    """One line of the doctor. `exit_code` is what it alone would make of the command."""

    check: str
    verdict: Verdict
    found: str
    remedy: str = ""
    exit_code: int = EXIT_DONE


Check = Callable[[], Iterable[Finding]]


def ok(check: str, found: str) -> Finding:
    """Nothing to do."""
    return Finding(check, Verdict.OK, found)


def failed(check: str, found: str, remedy: str) -> Finding:
    """Something is there, but wrong: exit code 1."""
    return Finding(check, Verdict.PROBLEM, found, remedy, EXIT_FAILED)


def lacks(check: str, found: str, remedy: str) -> Finding:
    """The machine does not give what is needed: exit code 3."""
    return Finding(check, Verdict.PROBLEM, found, remedy, EXIT_ENVIRONMENT)


def not_run(check: str, reason: str, remedy: str = "", *, required: bool = False) -> Finding:
    """It could not be found out; only a required one changes the exit code, to 3."""
    code = EXIT_ENVIRONMENT if required else EXIT_DONE
    return Finding(check, Verdict.NOT_RUN, reason, remedy, code)


def of_error(check: str, error: BedplateError) -> Finding:
    """A typed error as a problem: the machine's when it is an `EnvironmentLacks`."""
    kind = lacks if isinstance(error, EnvironmentLacks) else failed
    return kind(check, error.message, error.remedy or "")


def run_all(checks: dict[str, Check]) -> Iterator[Finding]:
    """The findings of every check; one that fails itself is NOT RUN and stops no other."""
    for name, check in checks.items():
        try:
            yield from check()
        except BedplateError as error:
            yield of_error(name, error)
        except Exception as cause:  # the doctor must get through
            yield not_run(name, f"{type(cause).__name__}: {cause}", required=True)
