"""Certificates: what a device was shown to do, by file hash, driver and device.

A certificate lies in `<data>/certificates` and counts only for the very file,
driver and device, and for this suite; one that others could have written is
none. Without one, the first open runs the
quick tier in a child and keeps what it found. A vendor's own certificate is
never read.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bedplate.core import files
from bedplate.core.errors import BedplateError
from bedplate.core.logging import get_logger
from bedplate.core.paths import data_dir, make_private
from bedplate.hal import abi, trust
from bedplate.hal.device import DeviceInfo
from bedplate.hal.errors import BackendRefused
from bedplate.hal.loader import Backend
from bedplate.hal.suite import judge
from bedplate.hal.suite.registry import SUITE_VERSION, Case, Tier
from bedplate.hal.suite.run import CaseResult, run, select, worker_command

SCHEMA = "bedplate.certificate/1"
MOST_BYTES = 16 << 20
"""Two hundred times what the full tier writes."""
MOST_HANGS = 3
"""Of cases at the first open, where someone waits: at ten seconds each."""
_log = get_logger("hal")


def make(
    backend: Backend,
    info: DeviceInfo,
    tier: Tier,
    cases: Sequence[Case],
    results: Sequence[CaseResult],
    performance: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """A certificate/1 of a run; `performance` holds what the performance tier measured."""
    verdicts = judge.verdicts(info.claims, cases, results)
    return {
        "schema": SCHEMA,
        **_key(backend, info),
        "backend": backend.name,
        "device_id": info.id,
        "tier": tier,
        "time_ns": time.time_ns(),
        "capabilities": {name: asdict(verdict) for name, verdict in verdicts.items()},
        "summary": judge.summary(verdicts),
        "cases": [asdict(result) for result in results],
        "performance": list(performance),
        **({} if performance else {"performance_reason": f"the {tier} tier measures nothing"}),
    }


def store(certificate: dict[str, Any], folder: Path | None = None) -> Path:
    """Write a certificate; its path. UsageError when the folder cannot be written."""
    place = make_private(folder or data_dir() / "certificates")
    path = place / _file_name(certificate)
    files.replace(path, json.dumps(certificate, indent=1) + "\n")
    return path


def find(backend: Backend, info: DeviceInfo, folder: Path | None = None) -> dict[str, Any] | None:
    """The certificate that counts for this device now, or None."""
    key = _key(backend, info)
    path = (folder or data_dir() / "certificates") / _file_name(key)
    if not path.exists():
        return None
    try:
        with trust.opened(path) as file:
            found: dict[str, Any] = json.loads(file.read(MOST_BYTES))
        whole = _told(found) and all(found[name] == key[name] for name in key)
    except BackendRefused as error:
        _log.warning("certificate_refused", error.message, device=info.id)
        return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return found if whole else None


def _told(found: dict[str, Any]) -> bool:
    """Whether a certificate says what everyone who reads one asks; it raises or not."""
    judge.certified(found["capabilities"])
    told = found["schema"], type(found["tier"]), type(found["time_ns"])
    return told == (SCHEMA, str, int)


def trusted(backend: Backend, info: DeviceInfo) -> frozenset[str]:
    """The optional capabilities that may be relied on.

    From the certificate; without one the quick tier runs first, which takes
    seconds, is logged, and is kept. When it cannot run nothing is relied on.
    """
    certificate = find(backend, info)
    if certificate is None:
        certificate = _first_open(backend, info)
    return frozenset() if certificate is None else judge.certified(certificate["capabilities"])


def _first_open(backend: Backend, info: DeviceInfo) -> dict[str, Any] | None:
    _log.info("certificate_missing", "running the quick conformance tier", device=info.id)
    try:
        cases = select(info.claims, "quick")
        results = run(cases, worker_command(f"{backend.spec}:{info.index}"), most_hangs=MOST_HANGS)
        certificate = make(backend, info, "quick", cases, results)
    except BedplateError as error:
        _log.warning("certificate_not_made", str(error), device=info.id)
        return None
    try:
        store(certificate)
    except (BedplateError, OSError) as error:
        _log.warning("certificate_not_kept", str(error), device=info.id)
    return certificate


def _key(backend: Backend, info: DeviceInfo) -> dict[str, str]:
    return {
        "library_sha256": backend.sha256,
        "abi": abi.ABI_VERSION,
        "driver": info.driver,
        "device": info.name,
        "suite": SUITE_VERSION,
        # Devices of one name may differ in their claims, as the liar's do.
        "claims": " ".join(sorted(info.claims)),
        "index": str(info.index),
    }


def _file_name(key: dict[str, Any]) -> str:
    names = ("library_sha256", "abi", "driver", "device", "suite", "claims", "index")
    digest = hashlib.sha256("\0".join(str(key[name]) for name in names).encode()).hexdigest()
    return f"{digest[:32]}.json"
