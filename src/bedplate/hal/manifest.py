"""Manifests: the small JSON file that registers a backend.

::

    {"schema": "bedplate.hal-manifest/1", "name": "cpu", "library": "bedplate_hal_cpu.so",
     "abi": "0.1", "isa": "x86_64", "sha256": "..."}

`library` is absolute, or relative and inside the manifest's own directory; it
is never searched for. `abi` and `isa` (of the machine, as `uname -m` says) let
a file be refused without being opened.
"""

from __future__ import annotations

import json
import platform
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bedplate.hal import abi, trust
from bedplate.hal.errors import ManifestInvalid

SCHEMA = "bedplate.hal-manifest/1"
MOST_BYTES = 65_536
_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_ABI = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")
_ISA = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_KEYS = ("schema", "name", "library", "abi", "isa", "sha256")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest that is well formed; its library has not been looked at."""

    path: Path
    name: str
    library: Path
    abi: tuple[int, int]
    isa: str
    sha256: str
    # The library was given relative to the manifest, and must really lie under its directory.
    inside: bool = False


def read(path: Path) -> Manifest:
    """Read and check a manifest that may be believed.

    Raises BackendRefused when others could have written it, ManifestInvalid
    with the reason when it is wrong.
    """
    with trust.opened(path) as file:
        raw = file.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise ManifestInvalid(f"{path} is larger than {MOST_BYTES} bytes")
    return parse(path, raw)


def parse(path: Path, raw: bytes) -> Manifest:
    """A checked manifest from its bytes; `path` says where it lies."""
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError) as cause:
        raise ManifestInvalid(f"{path} is not JSON: {cause}") from cause
    if not isinstance(content, dict):
        raise ManifestInvalid(f"{path} holds no JSON object")
    for key in _KEYS:
        if not isinstance(content.get(key), str):
            raise ManifestInvalid(f"{path} has no text under {key!r}")
    if content["schema"] != SCHEMA:
        raise ManifestInvalid(f"{path} has the schema {content['schema']!r}, not {SCHEMA!r}")
    _match(path, content, "name", _NAME)
    _match(path, content, "isa", _ISA)
    _match(path, content, "sha256", _SHA256)
    major, minor = (int(part) for part in _match(path, content, "abi", _ABI).groups())
    return Manifest(
        path=path,
        name=content["name"],
        library=_library(path, content["library"]),
        abi=(major, minor),
        isa=content["isa"],
        sha256=content["sha256"],
        inside=not Path(content["library"]).is_absolute(),
    )


def mismatch(manifest: Manifest) -> str | None:
    """Why its file cannot work in this process, or None."""
    major, minor = manifest.abi
    if major != abi.ABI_MAJOR:
        return f"it speaks ABI {major}.{minor}, this host {abi.ABI_VERSION}"
    if manifest.isa not in ("any", platform.machine()):
        return f"it is built for {manifest.isa}, this machine is {platform.machine()}"
    return None


def _match(path: Path, content: dict[str, Any], key: str, pattern: re.Pattern[str]) -> Any:
    found = pattern.fullmatch(content[key])
    if found is None:
        raise ManifestInvalid(f"{path} has the {key} {content[key]!r}")
    return found


def _library(path: Path, text: str) -> Path:
    folder = path.parent.absolute()
    # Its name is printed, and a path of the system has no lone surrogate.
    if not text.isprintable() or not text:
        raise ManifestInvalid(f"{path} has the library {text!r}")
    library = Path(text)
    if library.is_absolute():
        return library
    whole = Path(*(folder / library).parts)
    if ".." in library.parts or not whole.is_relative_to(folder):
        raise ManifestInvalid(f"{path} has the library {text!r}, outside its own directory")
    return whole
