"""What a case checks, and how a backend fails it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from bedplate.hal.device import DeviceInfo
from bedplate.hal.errors import NotFound
from bedplate.hal.suite.lies import LIES
from bedplate.hal.suite.registry import Case, Polarity, Tier, all_cases

FAILURES: dict[Polarity, str] = {
    "positive": "what is claimed does something else than the contract says",
    "negative": "bad input is taken, refused with another status, or refused without a sentence",
    "absent": "what is not claimed works all the same, or is refused with another status",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """One case, for people and machines."""

    name: str
    capability: str
    polarity: Polarity
    tier: Tier
    checks: str
    fails_when: tuple[str, ...]
    needs: tuple[str, ...]
    faced_by: tuple[str, ...]
    """Ids of the devices whose claims make the case theirs."""


def explain(pattern: str, infos: Sequence[DeviceInfo]) -> list[Explanation]:
    """The cases of a name, or of a pattern with `*`. NotFound, with a near name, for none."""
    cases = all_cases()
    found = [case for name, case in cases.items() if fnmatchcase(name, pattern)]
    if not found:
        near = difflib.get_close_matches(pattern, cases, 1, 0.5)
        raise NotFound(
            f"no case is called {pattern!r}",
            remedy=f"did you mean {near[0]}?" if near else "give a name of a report, or queue.*",
        )
    return [_explanation(case, infos) for case in found]


def _explanation(case: Case, infos: Sequence[DeviceInfo]) -> Explanation:
    return Explanation(
        name=case.name,
        capability=case.capability,
        polarity=case.polarity,
        tier=case.tier,
        checks=" ".join(case.doc.split()),
        fails_when=(
            FAILURES[case.polarity],
            *(f"as the lie {lie}: {LIES[lie]}" for lie in case.catches),
        ),
        needs=case.needs,
        faced_by=tuple(info.id for info in infos if case.applies(info.claims)),
    )
