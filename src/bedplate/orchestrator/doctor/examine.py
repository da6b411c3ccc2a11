"""All checks of the doctor, in the order in which things build on each other."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

from bedplate.orchestrator.doctor import machine
from bedplate.orchestrator.doctor.finding import Check, Finding, not_run, run_all
from bedplate.orchestrator.doctor.place import Place


def examine(data: Path, config: str | None = None) -> Iterator[Finding]:
    """Findings on this machine and the platform's place on it, as they are made."""
    place = Place(data, config)
    checks: dict[str, Check] = {
        "python": machine.python,
        "packages": machine.packages,
        "native libraries": machine.native_libraries,
        "data directory": place.folder,  # before the HAL keeps its certificates there
        "configuration": place.configuration,
        "backends": machine.backends,
        "processor": machine.processor,
    }
    configured: dict[str, Check] = {
        "model": place.model,
        "memory": lambda: machine.memory(*place.needed_bytes()),
        "port": place.port,
    }
    if not place.is_configured():
        reason = "the configuration cannot be read"
        configured = {name: functools.partial(_left_out, name, reason) for name in configured}
    checks |= configured
    checks |= {"API key": place.key, "platform": place.platform}
    return run_all(checks)


def _left_out(name: str, reason: str) -> list[Finding]:
    return [not_run(name, reason)]
