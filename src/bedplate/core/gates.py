"""Engineering standards as gates, each named for the incident it prevents.

Any system may provide gates; `standards check` runs those that apply. A check
that could not run is NOT RUN with its reason, never a pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol


class GateVerdict(StrEnum):
    """What a gate found."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not_run"


@dataclass(frozen=True, slots=True)
class Finding:
    """One violation: the file and line it is in, and what to do."""

    path: str
    line: int | None
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class GateResult:
    """A verdict; `reason` is required unless it passed."""

    gate: str
    verdict: GateVerdict
    reason: str | None = None
    findings: Sequence[Finding] = ()

    def __post_init__(self) -> None:
        if self.verdict is not GateVerdict.PASSED and not self.reason:
            raise ValueError(f"the gate {self.gate} gives no reason for {self.verdict}")


class Gate(Protocol):
    """One standard that a tree can be checked against."""

    @property
    def name(self) -> str:
        """Its name, such as `kernel_review`."""
        ...

    @property
    def incident(self) -> str:
        """The class of incident that it prevents."""
        ...

    def check(self, tree: Path) -> GateResult:
        """Check the tree at this path; changes nothing in it."""
        ...
