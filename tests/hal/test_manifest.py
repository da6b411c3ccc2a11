"""Manifests: what is read, and what is refused with which words."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.hal import manifest
from bedplate.hal.errors import BackendRefused, ManifestInvalid

GOOD: dict[str, Any] = {
    "schema": manifest.SCHEMA,
    "name": "acme",
    "library": "bedplate_hal_acme.so",
    "abi": "0.1",
    "isa": "any",
    "sha256": "0" * 64,
}
PLACE = Path("/opt/acme/hal.d/acme.json")


def raw(**changes: Any) -> bytes:
    """The good manifest with parts replaced; None takes a part away."""
    merged = {key: value for key, value in (GOOD | changes).items() if value is not None}
    return json.dumps(merged).encode()


def test_a_relative_library_lies_beside_its_manifest() -> None:
    """And unknown keys are ignored."""
    read = manifest.parse(PLACE, raw(extra=1))
    assert read.library == Path("/opt/acme/hal.d/bedplate_hal_acme.so")
    assert (read.name, read.abi, read.sha256) == ("acme", (0, 1), "0" * 64)


def test_line_ends_do_not_matter() -> None:
    """CRLF and a missing last newline are JSON."""
    assert manifest.parse(PLACE, json.dumps(GOOD, indent=1).replace("\n", "\r\n").encode())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "no JSON object"),
        (raw(name=None), "'name'"),
        (raw(name=7), "'name'"),
        (raw(name="Acme"), "name 'Acme'"),
        (raw(name="../acme"), "name '../acme'"),
        (raw(name="a" * 33), "name 'aaa"),
        (raw(schema="bedplate.hal-manifest/2"), "schema"),
        (raw(abi="1"), "abi '1'"),
        (raw(abi="0.1.2"), "abi"),
        (raw(sha256="0" * 63), "sha256"),
        (raw(library=""), "library ''"),
        (raw(library="../x.so"), "outside its own directory"),
        (raw(library="a/../../x.so"), "outside its own directory"),
        (raw(library="a\0.so"), "library"),
    ],
)
def test_a_wrong_manifest_is_refused_with_its_reason(content: bytes, words: str) -> None:
    """The sentence names the file and what is wrong in it."""
    with pytest.raises(ManifestInvalid, match=words) as caught:
        manifest.parse(PLACE, content)
    assert str(PLACE) in caught.value.message


@given(st.binary(max_size=300))
def test_any_bytes_are_parsed_or_refused(content: bytes) -> None:
    """Nothing but ManifestInvalid comes out."""
    with contextlib.suppress(ManifestInvalid):
        manifest.parse(PLACE, content)


def test_a_file_that_cannot_be_read_or_is_huge(tmp_path: Path) -> None:
    """Missing and oversized files are refused before they are parsed."""
    with pytest.raises(BackendRefused, match="cannot be read"):
        manifest.read(tmp_path / "none.json")
    huge = tmp_path / "huge.json"
    huge.write_bytes(b" " * (manifest.MOST_BYTES + 1))
    with pytest.raises(ManifestInvalid, match="larger than"):
        manifest.read(huge)


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"abi": "1.0"}, "ABI 1.0"), ({"isa": "riscv128"}, "built for riscv128"), ({}, None)],
)
def test_a_file_for_elsewhere_is_known_without_opening(
    changes: dict[str, str], words: str | None
) -> None:
    """Another major or another machine."""
    reason = manifest.mismatch(manifest.parse(PLACE, raw(**changes)))
    assert (words in reason) if words and reason else reason is words


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("library", "\ud800.so"),
        ("library", "a\nb.so"),
        ("library", "\x1b[31m.so"),
        ("isa", "\ud800"),
        ("isa", "\x1b[31mred"),
        ("isa", ""),
        ("abi", "\u0660.\u0661"),
    ],
)
def test_what_does_not_print_is_refused(key: str, value: str) -> None:
    """Half a surrogate pair is no path, and control characters steer who reads the reason."""
    with pytest.raises(ManifestInvalid) as caught:
        manifest.parse(PLACE, raw(**{key: value}))
    assert caught.value.message.isprintable()
