"""Which candidates are found, in which order, and why one is not taken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.hal import foreign

from bedplate.hal import discovery, doctor
from bedplate.hal.discovery import DIRECTORIES_VARIABLE, FILES_VARIABLE, Candidate
from bedplate.hal.errors import BackendMissing, BackendRefused


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory for manifests, and a data directory of the test's own."""
    monkeypatch.setenv("BEDPLATE_DATA_DIR", str(tmp_path / "data"))
    made = tmp_path / "hal.d"
    made.mkdir(mode=0o755)
    return made


def library(folder: Path, name: str = "acme") -> Path:
    """A file that is never opened here."""
    path = folder / f"{name}.so"
    path.write_bytes(b"code of " + name.encode())
    path.chmod(0o644)
    return path


def by_name(candidates: list[Candidate], name: str) -> list[Candidate]:
    """The candidates of a name."""
    return [candidate for candidate in candidates if candidate.name == name]


def test_our_own_backends_are_found(folder: Path) -> None:
    """cpu is taken from the package."""
    (found,) = by_name(discovery.discover(environment={}), "cpu")
    assert (found.origin, found.reason) == ("package", None)


@pytest.mark.parametrize("slash", ["", "/", "//"])
def test_a_directory_with_and_without_a_slash(folder: Path, slash: str) -> None:
    """OpenCL-ICD-Loader #104: the same devices."""
    foreign.register(library(folder), "acme")
    found = discovery.discover(environment={DIRECTORIES_VARIABLE: f"{folder}{slash}"})
    assert [(c.origin, c.reason) for c in by_name(found, "acme")] == [(DIRECTORIES_VARIABLE, None)]


def test_several_directories_in_one_variable(folder: Path, tmp_path: Path) -> None:
    """Empty parts are nothing, and a missing directory is shown with its reason."""
    other = tmp_path / "other"
    other.mkdir()
    foreign.register(library(folder), "acme")
    foreign.register(library(other, "beta"), "beta")
    value = f":{folder}:{tmp_path / 'none'}::{other}:"
    found = discovery.discover(environment={DIRECTORIES_VARIABLE: value})
    assert by_name(found, "acme")[0].reason is by_name(found, "beta")[0].reason is None
    (missing,) = [c for c in found if c.path.name == "none"]
    assert "cannot be read" in (missing.reason or "")


def test_a_relative_directory_is_not_taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current directory is nobody's registration."""
    foreign.register(library(folder), "acme")
    monkeypatch.chdir(folder.parent)
    found = discovery.discover(environment={DIRECTORIES_VARIABLE: "hal.d", FILES_VARIABLE: "."})
    assert not by_name(found, "acme")
    assert all("not an absolute path" in (c.reason or "") for c in found[:2])


def test_the_first_of_a_name_wins(folder: Path, tmp_path: Path) -> None:
    """A file of the variable before a directory, both before the package; others say by whom."""
    mine = foreign.register(library(folder, "cpu"), "cpu")
    other = tmp_path / "other"
    other.mkdir()
    foreign.register(library(other, "cpu"), "cpu")
    environment = {FILES_VARIABLE: str(mine), DIRECTORIES_VARIABLE: str(other)}
    found = by_name(discovery.discover(environment=environment), "cpu")
    assert [c.origin for c in found] == [FILES_VARIABLE, DIRECTORIES_VARIABLE, "package"]
    assert found[0].reason is None
    assert all(f"is taken by {mine}" in (c.reason or "") for c in found[1:])


def test_a_user_installs_without_root(folder: Path, tmp_path: Path) -> None:
    """<data>/hal.d counts."""
    own = tmp_path / "data" / "hal.d"
    own.mkdir(parents=True)
    foreign.register(library(own), "acme")
    (found,) = by_name(discovery.discover(), "acme")
    assert (found.origin, found.reason) == ("user", None)


def test_safe_looks_at_our_own_only(folder: Path, tmp_path: Path) -> None:
    """Vulkan-Loader #513: nothing foreign is even listed."""
    foreign.register(library(folder), "acme")
    found = discovery.discover(safe=True, environment={DIRECTORIES_VARIABLE: str(folder)})
    assert {candidate.origin for candidate in found} == {"package"}


def test_extra_rights_ignore_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under AT_SECURE the variables are the caller's."""
    foreign.register(library(folder), "acme")
    monkeypatch.setattr(discovery.trust, "secure_execution", lambda: True)
    found = discovery.discover(environment={DIRECTORIES_VARIABLE: str(folder)})
    assert not by_name(found, "acme")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"library": "libacme.so.1"}, "cannot be read"),
        ({"sha256": "1" * 64}, "SHA-256"),
        ({"abi": "3.0"}, "ABI 3.0"),
        ({"isa": "pdp11"}, "built for pdp11"),
        ({"library": "/"}, "not a regular file"),
    ],
)
def test_a_registration_that_leads_nowhere_is_listed(
    folder: Path, changes: dict[str, str], words: str
) -> None:
    """ROCm #1131: the name, the file and the reason, and others keep working."""
    foreign.register(library(folder), "acme", **changes)
    found = discovery.discover(environment={DIRECTORIES_VARIABLE: str(folder)})
    assert words in (by_name(found, "acme")[0].reason or "")
    assert by_name(found, "cpu")[0].reason is None
    with pytest.raises(BackendRefused, match="acme is refused"):
        discovery.find("acme", found)


def test_a_manifest_that_others_may_write_is_refused(folder: Path) -> None:
    """Before it is read."""
    foreign.register(library(folder), "acme").chmod(0o666)
    found = discovery.discover(environment={DIRECTORIES_VARIABLE: str(folder)})
    assert "may be written by others" in (found[0].reason or "")
    with pytest.raises(BackendMissing):
        discovery.find("acme", found)


def test_an_empty_manifest_is_listed(folder: Path) -> None:
    """icd_linux.c: refused with a reason, nothing is read past its end."""
    (folder / "empty.json").write_bytes(b"")
    found = discovery.discover(environment={DIRECTORIES_VARIABLE: str(folder)})
    assert "not JSON" in (found[0].reason or "")


def test_entry_points_name_directories(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package is located, not imported; one that is gone is nothing."""
    package = folder / "acme_backend"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    foreign.register(library(package), "acme")
    monkeypatch.syspath_prepend(str(folder))

    class Point:
        def __init__(self, value: str) -> None:
            self.value = value

    points = [Point("acme_backend"), Point("not_there"), Point("")]
    monkeypatch.setattr(discovery.importlib.metadata, "entry_points", lambda group: points)
    (found,) = by_name(discovery.discover(environment={}), "acme")
    assert (found.origin, found.reason) == ("entry point", None)


def test_a_directory_with_an_impossible_name_is_listed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too long for the system; the others are still found."""
    wrong = "/" + "a" * 300
    monkeypatch.setenv(DIRECTORIES_VARIABLE, f"{wrong}:{folder}")
    foreign.register(library(folder), "acme")
    found = discovery.discover()
    assert [c.reason for c in by_name(found, "acme")] == [None]
    (odd,) = [candidate for candidate in found if str(candidate.path) == wrong]
    assert "cannot be read" in str(odd.reason)


def test_a_name_that_is_no_text_is_told_escaped(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file name of other bytes than UTF-8 does not end what lists it."""
    os.close(os.open(os.fsencode(folder) + b"/\xff.json", os.O_CREAT, 0o644))
    monkeypatch.setenv(DIRECTORIES_VARIABLE, str(folder))
    (odd,) = [one for one in doctor.examine() if one.path.parent == folder]
    assert odd.path.name == "\\udcff.json"
    assert str(odd.reason).isprintable()
