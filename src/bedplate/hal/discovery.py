"""Which files register backends, and which of them are taken.

From strong to weak: `BEDPLATE_HAL_BACKEND_FILES` and `BEDPLATE_HAL_BACKEND_DIRS`
(ignored under AT_SECURE), the user's `<data>/hal.d`, the package's own
directory, entry points of the group `bedplate.hal` (each names a directory),
and the system's directory. The first candidate of a name wins; later ones are
listed with the reason. Nothing is loaded here.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bedplate.core.command import quoted
from bedplate.core.paths import data_dir, native_library_dir
from bedplate.hal import manifest, trust
from bedplate.hal.errors import BackendMissing, BackendRefused, HalError
from bedplate.hal.manifest import Manifest
from bedplate.hal.trust import TrustedFile

FILES_VARIABLE = "BEDPLATE_HAL_BACKEND_FILES"
DIRECTORIES_VARIABLE = "BEDPLATE_HAL_BACKEND_DIRS"
ENTRY_POINTS = "bedplate.hal"
SYSTEM_DIRECTORY = Path("/usr/lib/bedplate/hal.d")
HIDDEN = frozenset({"example", "liar", "shuffle"})
"""Backends that are taken only when named."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that was looked at. `reason` says why it is not taken; None is taken."""

    origin: str
    path: Path
    manifest: Manifest | None
    reason: str | None

    @property
    def name(self) -> str | None:
        """The backend it registers, when it could be read."""
        return self.manifest.name if self.manifest else None


def discover(
    *, safe: bool = False, environment: Mapping[str, str] | None = None
) -> list[Candidate]:
    """Every candidate, strongest first. `safe` looks at the package's own only."""
    taken: dict[str, Path] = {}
    found = []
    for origin, path in _places(safe, os.environ if environment is None else environment):
        candidate = _examine(origin, path, taken)
        if candidate.reason is None and candidate.manifest is not None:
            taken[candidate.manifest.name] = path
        found.append(candidate)
    return found


def find(name: str, candidates: list[Candidate]) -> Manifest:
    """The manifest that is taken for a name.

    Raises BackendRefused with the reason when every candidate of that name
    was refused, BackendMissing when there is none.
    """
    same = [candidate for candidate in candidates if candidate.name == name]
    for candidate in same:
        if candidate.reason is None and candidate.manifest is not None:
            return candidate.manifest
    if same:
        raise BackendRefused(
            f"the backend {name} is refused: {same[0].reason}",
            remedy=f"see {quoted('hal doctor')}",
        )
    names = sorted({c.name for c in candidates if c.name and not c.reason} - HIDDEN)
    raise BackendMissing(
        f"there is no backend {name!r}",
        remedy=f"known are {', '.join(names)}; {quoted('hal list')} says which can be used here"
        if names
        else "run `make build`",
    )


@contextlib.contextmanager
def opened(registered: Manifest) -> Iterator[TrustedFile]:
    """A manifest's library that may be loaded, open and hashed. BackendRefused with the reason."""
    trust.check_file(registered.path)
    if reason := manifest.mismatch(registered):
        raise BackendRefused(f"{registered.library}: {reason}")
    with trust.opened(registered.library, registered.sha256) as file:
        folder = registered.path.parent.resolve()
        if registered.inside and not file.path.is_relative_to(folder):
            raise BackendRefused(
                f"{registered.library} leads to {file.path}, outside the manifest's directory"
            )
        yield file


def check(registered: Manifest) -> None:
    """Whether a manifest's library may be loaded now; BackendRefused with the reason."""
    with opened(registered):
        pass


def _examine(origin: str, path: Path, taken: Mapping[str, Path]) -> Candidate:
    if not path.is_absolute():
        return Candidate(origin, path, None, f"{path} is not an absolute path")
    try:
        registered = manifest.read(path)
    except HalError as error:
        return Candidate(origin, path, None, error.message)
    if registered.name in taken:
        reason = f"the name {registered.name} is taken by {taken[registered.name]}"
        return Candidate(origin, path, registered, reason)
    try:
        check(registered)
    except HalError as error:
        return Candidate(origin, path, registered, error.message)
    return Candidate(origin, path, registered, None)


def _places(safe: bool, environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if not safe:
        if not trust.secure_execution():
            yield from _from_environment(environment)
        yield from _manifests("user", data_dir(environment=environment) / "hal.d")
    yield from _manifests("package", native_library_dir() / "hal.d")
    if not safe:
        for folder in _entry_points():
            yield from _manifests("entry point", folder)
        yield from _manifests("system", SYSTEM_DIRECTORY)


def _from_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    for text in environment.get(FILES_VARIABLE, "").split(":"):
        if text:
            yield FILES_VARIABLE, Path(text)
    for text in environment.get(DIRECTORIES_VARIABLE, "").split(":"):
        if not text:
            continue
        folder = Path(text)
        # Not Path.is_dir, which raises for a name that is too long or may not be looked at.
        if folder.is_absolute() and os.path.isdir(folder):
            yield from _manifests(DIRECTORIES_VARIABLE, folder)
        else:
            # _examine refuses it with a reason, so that doctor shows it.
            yield DIRECTORIES_VARIABLE, folder


def _manifests(origin: str, folder: Path) -> Iterator[tuple[str, Path]]:
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(".json"))
    except OSError:
        return
    for name in names:
        yield origin, folder / name


def _entry_points() -> Iterator[Path]:
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        # The value names a package whose directory holds the manifests; only
        # its location is asked for, its code is not run.
        module = point.value.partition(":")[0]
        try:
            found = importlib.util.find_spec(module.partition(".")[0])
        except (ImportError, ValueError):
            continue
        if found is None or not found.submodule_search_locations:
            continue
        for location in found.submodule_search_locations:
            yield Path(location, *module.split(".")[1:])
