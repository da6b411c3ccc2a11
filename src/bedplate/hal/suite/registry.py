"""The registry of cases, by capability tag.

The mandatory tables count as capabilities that every device claims: core,
mem, queue, timeline. A positive case shows that a claim works, a negative one
that bad input is refused cleanly; a case for `absent` runs only when the
capability is not claimed and shows that it is then refused.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from bedplate.hal import abi

if TYPE_CHECKING:
    from bedplate.hal.suite.subject import Subject

SUITE_VERSION = "5"
"""Raised when a case is added or changed: older certificates are then not believed."""

MANDATORY = ("core", "mem", "queue", "timeline")
OPTIONAL = tuple(name.removeprefix("BP_CAP_").lower() for name in abi.CAPABILITY_NAMES.values())
CAPABILITIES = MANDATORY + OPTIONAL

Polarity = Literal["positive", "negative", "absent"]
Tier = Literal["quick", "full", "performance"]
"""What is run: quick is a part of full, performance is full and then `hal.bench`."""
Body = Callable[["Subject"], None]


class CaseFailed(Exception):
    """The device did something else than it must; the text says what."""


class NotRun(Exception):
    """The case could not be tried here; the text says why."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `catches` names the lies of the `liar` backend that it must expose.

    Of the `essential` cases of a capability at least one must pass; without
    that the rest proves nothing and the verdict is not_run.
    """

    name: str
    capability: str
    polarity: Polarity
    tier: Tier
    body: Body
    doc: str
    catches: tuple[str, ...] = ()
    needs: tuple[str, ...] = field(default=())
    essential: bool = False

    def applies(self, claims: frozenset[str]) -> bool:
        """Whether a device with these claims must face it."""
        claimed = self.capability in MANDATORY or self.capability in claims
        return claimed != (self.polarity == "absent")


_cases: dict[str, Case] = {}


def register(case: Case) -> None:
    """Add a case; ValueError for a repeated name or an unknown capability."""
    if case.name in _cases:
        raise ValueError(f"two cases are called {case.name}")
    if case.capability not in CAPABILITIES:
        raise ValueError(f"{case.name} is for the unknown capability {case.capability}")
    _cases[case.name] = case


def case(
    capability: str,
    polarity: Polarity,
    *,
    tier: Tier = "quick",
    catches: Sequence[str] = (),
    needs: Sequence[str] = (),
) -> Callable[[Body], Body]:
    """Register a function as the case `<capability>.<its name>`.

    `needs` names other capabilities without which it is NOT RUN.
    """

    def decorate(body: Body) -> Body:
        name = f"{capability}.{body.__name__}"
        doc = (body.__doc__ or "").strip()
        register(Case(name, capability, polarity, tier, body, doc, tuple(catches), tuple(needs)))
        return body

    return decorate


def all_cases() -> dict[str, Case]:
    """Every case by name, in the order of their modules."""
    package = importlib.import_module("bedplate.hal.suite.cases")
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda found: found.name):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(_cases)
