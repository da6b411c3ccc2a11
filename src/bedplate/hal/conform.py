"""`bedplate hal conform`: run the suite on a backend's devices and certify them.

A report says for each device what failed and what each capability is worth.
For the `liar` backend it also says which lie was caught by which case; there a
failure is what is wanted, and a lie that got away is the suite's fault.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from bedplate.core.errors import EXIT_DONE, EXIT_ENVIRONMENT, EXIT_FAILED
from bedplate.hal import bench, certificate
from bedplate.hal.device import Device, DeviceInfo
from bedplate.hal.errors import NotFound
from bedplate.hal.loader import Backend
from bedplate.hal.open import device_infos, load
from bedplate.hal.suite import judge, liar
from bedplate.hal.suite.explain import Explanation, explain
from bedplate.hal.suite.junit import document
from bedplate.hal.suite.registry import Case, Tier
from bedplate.hal.suite.run import CaseResult, run, select, worker_command

SEEDS = ("BEDPLATE_HAL_LIAR_SEED", "BEDPLATE_HAL_SHUFFLE_SEED")
"""What the backends of lies read; 1 where it is not set."""

Progress = Callable[[DeviceInfo, int, CaseResult], object]
"""Told after each case: the device, how many cases there are, the result."""


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """What the suite found on one device."""

    info: DeviceInfo
    certificate: dict[str, Any]
    problems: Sequence[str]
    lie: str | None
    caught_by: str | None
    exit_code: int

    def capabilities(self, verdict: str) -> list[str]:
        """Names of the capabilities in a group of the certificate's summary."""
        return list(self.certificate["summary"][verdict])

    def counts(self) -> dict[str, int]:
        """Number of cases by verdict."""
        verdicts = [case["verdict"] for case in self.certificate["cases"]]
        return {name: verdicts.count(name) for name in ("pass", "fail", "not_run")}


def conform(
    name: str,
    index: int | None = None,
    *,
    tier: Tier = "full",
    progress: Progress | None = None,
) -> list[DeviceReport]:
    """Run a tier on one device of a backend, or on all, and keep the certificates.

    Raises what loading the backend raises, NotFound for a wrong index.
    """
    backend = load(name)
    return [_device(backend, info, tier, progress) for info in _devices(backend, index)]


def liar_index(name: str, lie: str) -> int:
    """The device of a backend that tells a lie, by the lie's name or number.

    Raises what loading the backend raises, NotFound with the lies there are.
    """
    return liar.index_of(lie, device_infos(load(name)))


def explain_cases(name: str, index: int | None, pattern: str) -> list[Explanation]:
    """What cases check and how a backend fails them, and which devices of `name` face them.

    Raises what loading the backend raises, NotFound when no case has such a name.
    """
    return explain(pattern, _devices(load(name), index))


def seed_liars(seed: int) -> None:
    """Let liar and shuffle draw from `seed`, in this process and in those it starts."""
    for variable in SEEDS:
        os.environ[variable] = str(seed)


def junit(certificates: Sequence[dict[str, Any]]) -> str:
    """Certificates of one run as JUnit XML; expected failures are told as skipped."""
    return document(certificates, judge.load_expected())


def exit_code(reports: Sequence[DeviceReport]) -> int:
    """1 if any device failed, else 3 if a claim of one was not shown, else 0."""
    codes = {report.exit_code for report in reports}
    for code in (EXIT_FAILED, EXIT_ENVIRONMENT):
        if code in codes:
            return code
    return EXIT_DONE


def _devices(backend: Backend, index: int | None) -> Sequence[DeviceInfo]:
    infos = device_infos(backend)
    if index is None:
        return infos
    if index >= len(infos):
        raise NotFound(f"{backend.name} has no device {index}", remedy=f"it has {len(infos)}")
    return [infos[index]]


def _performance(
    backend: Backend, info: DeviceInfo, cases: Sequence[Case], results: Sequence[CaseResult]
) -> list[dict[str, Any]]:
    """What the device costs, using only what was just shown to work."""
    verdicts = judge.verdicts(info.claims, cases, results)
    shown = judge.certified({name: asdict(entry) for name, entry in verdicts.items()})
    with Device(backend, replace(info, capabilities=info.claims & shown)) as device:
        return [measurement.to_json() for measurement in bench.measure(device)]


def _device(
    backend: Backend, info: DeviceInfo, tier: Tier, progress: Progress | None
) -> DeviceReport:
    cases = select(info.claims, tier)
    results = run(
        cases,
        worker_command(f"{backend.spec}:{info.index}"),
        progress=(lambda result: progress(info, len(cases), result)) if progress else None,
    )
    performance = _performance(backend, info, cases, results) if tier == "performance" else []
    made = certificate.make(backend, info, tier, cases, results, performance)
    problems = judge.problems(backend.name, results, judge.load_expected())
    verdicts = judge.verdicts(info.claims, cases, results)
    lie = liar.lie_of(info)
    if lie is None:
        certificate.store(made)
    return DeviceReport(
        info=info,
        certificate=made,
        problems=problems,
        lie=lie,
        caught_by=None if lie is None else liar.caught(lie, cases, results),
        exit_code=judge.exit_code(problems, verdicts),
    )
