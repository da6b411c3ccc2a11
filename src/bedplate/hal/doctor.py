"""What `bedplate hal list` and `bedplate hal doctor` tell.

`doctor` shows every candidate file and the reason it is not taken, then asks
each taken one its first query. `list` shows the backends that can be used,
with their devices; nothing is opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bedplate.core.errors import BedplateError
from bedplate.core.legible import legible
from bedplate.hal import certificate, discovery
from bedplate.hal.device import DeviceInfo
from bedplate.hal.discovery import Candidate
from bedplate.hal.errors import BackendRefused, Unavailable
from bedplate.hal.loader import Backend
from bedplate.hal.open import device_infos, load_manifest
from bedplate.hal.suite.registry import MANDATORY


@dataclass(frozen=True, slots=True)
class Finding:
    """One candidate file, and what became of it."""

    origin: str
    path: Path
    backend: str | None
    verdict: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class ListedBackend:
    """A backend as people see it: usable with its devices, or the reason why not."""

    name: str
    library: Path
    abi: str | None
    devices: list[dict[str, Any]]
    reason: str | None


def examine(*, safe: bool = False) -> list[Finding]:
    """Every candidate: taken, hidden (only by name), unavailable here, or refused."""
    found = []
    for candidate in discovery.discover(safe=safe):
        verdict, reason = "refused", candidate.reason
        if reason is None:
            verdict, reason = _query(candidate)
        if candidate.name in discovery.HIDDEN and verdict != "refused":
            verdict, reason = "hidden", "it is taken only when it is named"
        path, why = Path(legible(str(candidate.path))), legible(reason) if reason else None
        found.append(Finding(candidate.origin, path, candidate.name, verdict, why))
    return found


def listing(*, safe: bool = False) -> list[ListedBackend]:
    """Every backend that registered itself with a readable manifest."""
    candidates = discovery.discover(safe=safe)
    shown = [c for c in candidates if c.manifest and c.name not in discovery.HIDDEN]
    return [_listed(candidate) for candidate in shown]


def _query(candidate: Candidate) -> tuple[str, str | None]:
    """The verdict on a candidate that may be asked, and why."""
    assert candidate.manifest is not None
    try:
        return "taken", _absent(load_manifest(candidate.manifest))
    except BackendRefused as error:
        return "refused", error.message
    except Unavailable as error:
        return "unavailable", _without_name(error, candidate.manifest.name)
    except BedplateError as error:
        return "refused", error.message


def _without_name(error: BedplateError, name: str) -> str:
    """Why `name` cannot be used; a list says beside it which backend that is."""
    return error.message.removeprefix(f"the backend {name} cannot work here: ")


def _absent(backend: Backend) -> str | None:
    """Why devices lack what the backend could do, from their properties `absent.*`."""
    backend.device_count()
    told = {
        f"{key.removeprefix('absent.')} is absent: {value}"
        for info in device_infos(backend)
        for key, value in info.properties.items()
        if key.startswith("absent.")
    }
    return "; ".join(sorted(told)) or None


def _certificate(backend: Backend, info: DeviceInfo) -> dict[str, Any] | None:
    """Tier, time and the capabilities by verdict; None without a certificate."""
    found = certificate.find(backend, info)
    if found is None:
        return None
    by_verdict: dict[str, list[str]] = {"certified": [], "withdrawn": [], "not_run": []}
    for name, entry in found["capabilities"].items():
        if name not in MANDATORY and entry["verdict"] in by_verdict:
            by_verdict[entry["verdict"]].append(name)
    return {"tier": found["tier"], "time_ns": found["time_ns"], **by_verdict}


def _listed(candidate: Candidate) -> ListedBackend:
    registered = candidate.manifest
    assert registered is not None
    library = Path(legible(str(registered.library)))
    if candidate.reason is not None:
        return ListedBackend(registered.name, library, None, [], legible(candidate.reason))
    try:
        backend = load_manifest(registered)
        devices = [
            {
                "id": info.id,
                "name": info.name,
                "driver": info.driver,
                "memory_bytes": info.memory_bytes,
                "claims": sorted(info.claims),
                "certificate": _certificate(backend, info),
                "properties": dict(info.properties),
            }
            for info in device_infos(backend)
        ]
    except BedplateError as error:
        reason = legible(_without_name(error, registered.name))
        return ListedBackend(registered.name, library, None, [], reason)
    return ListedBackend(registered.name, library, backend.abi, devices, None)
