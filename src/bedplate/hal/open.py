"""From a device's name to an open device.

A spec is `backend`, `backend:index`, or the absolute path of a manifest with
an optional `:index`. A backend is loaded once a process; its first query of a
new file runs in a child.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from pathlib import Path

from bedplate.core.legible import legible
from bedplate.hal import discovery, inprocess, manifest
from bedplate.hal.certificate import trusted
from bedplate.hal.device import Device, DeviceInfo, read_info
from bedplate.hal.errors import BackendRefused, InvalidArgument, NotFound, Unavailable
from bedplate.hal.loader import Backend
from bedplate.hal.manifest import Manifest
from bedplate.hal.probe import probe

_loaded: dict[Path, Backend] = {}
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A parsed device name: a backend or a manifest's path, and an index."""

    backend: str
    index: int


def parse_spec(spec: str) -> DeviceSpec:
    """Read `backend[:index]` or `/path/to/manifest.json[:index]`; InvalidArgument otherwise."""
    head, colon, tail = spec.rpartition(":")
    # At most as many digits as the largest uint32 has: an index is one.
    counted = colon and tail.isascii() and tail.isdigit() and len(tail) <= 10
    backend, number = (head, tail) if counted else (spec, "0")
    if not backend or (not backend.startswith("/") and not backend.replace("_", "").isalnum()):
        remedy = "write BACKEND or BACKEND:INDEX, for example cpu:0"
        if "/" in backend or backend.endswith(".json"):
            remedy = f"name a manifest by its absolute path, {legible(str(Path(spec).absolute()))}"
        raise InvalidArgument(f"{spec!r} is not a device", remedy=remedy)
    return DeviceSpec(backend, int(number))


def load(name: str, *, safe: bool = False) -> Backend:
    """Load a backend by name or by the path of its manifest.

    Raises BackendMissing, BackendRefused, ManifestInvalid, or what the
    loader found wrong.
    """
    if name.startswith("/"):
        registered = manifest.read(Path(name))
    else:
        registered = discovery.find(name, discovery.discover(safe=safe))
    return load_manifest(registered, name)


def load_manifest(registered: Manifest, spec: str | None = None) -> Backend:
    """Check, probe and load what a manifest registers; `spec` is how it was asked for."""
    with discovery.opened(registered) as file, _lock:
        known = _loaded.get(file.path)
        if known is not None and known.sha256 == registered.sha256:
            return known
        result = probe(file, registered.sha256)
        # The child that was asked has no machine; we may.
        if result.unavailable and not inprocess.registered(registered.name):
            raise Unavailable(f"the backend {registered.name} cannot work here: {result.reason}")
        if result.reason is not None and not result.unavailable:
            raise BackendRefused(f"the backend {registered.name} is refused: {result.reason}")
        backend = Backend(registered.name, file, registered.sha256, spec or registered.name)
        _loaded[file.path] = backend
        return backend


def device_infos(backend: Backend) -> list[DeviceInfo]:
    """What a backend says of each of its devices; none is opened."""
    return [read_info(backend, index) for index in range(backend.device_count())]


def open_device(spec: str = "cpu", *, trust_claims: bool = False) -> Device:
    """Open a device, for example `cpu` or `cpu:0`; best as a context.

    Capabilities that no certificate covers read as absent unless
    `trust_claims`. Raises BackendMissing, BackendRefused, NotFound for an
    index that is not there, Unavailable when the backend cannot work here.
    """
    wanted = parse_spec(spec)
    backend = load(wanted.backend)
    count = backend.device_count()
    if wanted.index >= count:
        raise NotFound(
            f"{backend.name} has no device {wanted.index}",
            remedy=f"it has {count}, numbered from 0",
        )
    info = read_info(backend, wanted.index)
    if not trust_claims:
        info = replace(info, capabilities=info.claims & trusted(backend, info))
    return Device(backend, info)
