"""What the OpenCL loader would read, told without opening anything."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bedplate.hal.icd import registrations


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A file that may be a platform's library."""
    path = tmp_path / "libplatform.so"
    path.write_bytes(b"\x7fELF")
    path.chmod(0o644)
    return path


@pytest.fixture
def vendors(tmp_path: Path) -> Path:
    """A directory of registrations."""
    folder = tmp_path / "vendors"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    ("content", "verdict", "words"),
    [
        ("{}\n", "read", None),
        ("", "useless", "it is empty"),
        ("\n{}\n", "useless", "first line names no library"),
        ("{}", "odd", "no final newline"),
        ("{}\r\n", "odd", "a carriage return around"),
        (" {} \n", "odd", "blanks around"),
        ("{}\nmore\n", "odd", "first line only"),
        ("/no/such/library.so\n", "useless", "does not exist"),
        ("libno_such_platform.so\n", "useless", "is a bare name"),
    ],
)
def test_a_registration_is_judged(
    vendors: Path, library: Path, content: str, verdict: str, words: str | None
) -> None:
    """Empty, without a final newline, CRLF, missing library, bare name: each has its reason."""
    (vendors / "a.icd").write_text(content.format(library), newline="")
    (found,) = registrations({"OCL_ICD_VENDORS": str(vendors)})
    assert (found.verdict, found.path) == (verdict, vendors / "a.icd")
    assert (words or "") in (found.reason or "")
    assert (found.reason is None) == (words is None)


def test_a_directory_is_read_with_and_without_a_slash(vendors: Path, library: Path) -> None:
    """OpenCL-ICD-Loader #104; in the order of names, and only *.icd."""
    for name in ("b.icd", "a.icd", "c.txt"):
        (vendors / name).write_text(f"{library}\n")
    found = registrations({"OCL_ICD_VENDORS": str(vendors)})
    assert [item.path.name for item in found] == ["a.icd", "b.icd"]
    assert registrations({"OCL_ICD_VENDORS": f"{vendors}/"}) == found
    assert [r.library for r in registrations({"OPENCL_VENDOR_PATH": str(vendors)})] == [
        str(library)
    ] * 2


def test_a_file_or_a_library_may_be_named_itself(vendors: Path, library: Path) -> None:
    """One registration, or the library without one; a file that is gone says so."""
    (vendors / "a.icd").write_text(f"{library}\n")
    (one,) = registrations({"OCL_ICD_VENDORS": str(vendors / "a.icd")})
    (direct,) = registrations({"OCL_ICD_VENDORS": str(library)})
    (beside,) = registrations({"OCL_ICD_VENDORS": "a.icd", "OPENCL_VENDOR_PATH": str(vendors)})
    assert one.library == direct.library == beside.library == str(library)
    assert {one.verdict, direct.verdict, beside.verdict} == {"read"}
    (gone,) = registrations({"OCL_ICD_VENDORS": str(vendors / "gone.icd")})
    assert (gone.verdict, gone.library) == ("useless", None)


def test_a_library_that_anyone_may_change_is_odd(vendors: Path, library: Path) -> None:
    """The loader would run it all the same, so people are told."""
    (vendors / "a.icd").write_text(f"{library}\n")
    library.chmod(0o666)
    (found,) = registrations({"OCL_ICD_VENDORS": str(vendors)})
    assert found.verdict == "odd"
    assert "may be written by others" in (found.reason or "")


def test_odd_registrations_are_told_not_raised(vendors: Path) -> None:
    """A name that no system takes, a pipe, and characters that steer a terminal."""
    (vendors / "a.icd").write_text("a" * 300 + "\n")
    (vendors / "b.icd").write_text("/" + "b" * 300 + "\n")
    (vendors / "c.icd").write_bytes(b"/c\x1b[31m.so\n")
    os.mkfifo(vendors / "d.icd")
    found = registrations({"OCL_ICD_VENDORS": str(vendors)})
    assert [one.verdict for one in found] == ["useless"] * 4
    assert found[2].library == "/c\\x1b[31m.so"
    assert "\\x1b" in str(found[2].reason)
    assert found[3].reason == "it is not a regular file"
