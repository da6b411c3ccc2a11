"""The liar backend, seen from the suite: which lie each device tells, who must catch it.

A lie that no case catches is a bug of the suite, and so is a case that names
a lie which does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bedplate.hal.device import DeviceInfo
from bedplate.hal.errors import NotFound
from bedplate.hal.suite.registry import Case
from bedplate.hal.suite.run import CaseResult

PROPERTY = "liar.lie"


def lie_of(info: DeviceInfo) -> str | None:
    """The lie that a device tells, None for an honest one."""
    return info.properties.get(PROPERTY)


def index_of(lie: str, infos: Sequence[DeviceInfo]) -> int:
    """The index of the device that tells a lie, given by name or by number.

    Raises NotFound, with the names there are.
    """
    lies = {lie_of(info): info.index for info in infos if lie_of(info)}
    if lie in lies:
        return lies[lie]
    if lie.isdecimal() and int(lie) in lies.values():
        return int(lie)
    names = " ".join(str(name) for name in lies)
    raise NotFound(
        f"no device here tells the lie {lie!r}",
        remedy=f"give a number or one of: {names}" if lies else "lies are told by liar and shuffle",
    )


def unwatched(lies: Iterable[str], cases: Iterable[Case]) -> list[str]:
    """What is wrong between lies and cases, one sentence each."""
    known, named = set(lies), {lie for case in cases for lie in case.catches}
    missing = [f"no case catches the lie {lie}" for lie in sorted(known - named)]
    return missing + [f"a case names the unknown lie {lie}" for lie in sorted(named - known)]


def caught(lie: str, cases: Sequence[Case], results: Sequence[CaseResult]) -> str | None:
    """The case that was to catch a lie and failed; None when it got away."""
    watchers = {case.name for case in cases if lie in case.catches}
    for result in results:
        if result.name in watchers and result.verdict == "fail":
            return result.name
    return None
