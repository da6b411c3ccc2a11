from __future__ import annotations

import os
import sysconfig
from pathlib import Path

import pytest

from bedplate.core.command import command, program, quoted


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> None:
    """A default data directory of the test's own."""
    monkeypatch.delenv("BEDPLATE_DATA_DIR", raising=False)
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", "/share")


@pytest.mark.parametrize(
    ("words", "data", "environment", "told"),
    [
        ("down", None, None, "bedplate down"),
        ("down", "/share/bedplate", None, "bedplate down"),
        ("down", "/plate", None, "bedplate down --data-dir /plate"),
        ("down", "/my plate", None, "bedplate down --data-dir '/my plate'"),
        ("down", None, "/env", "bedplate down --data-dir /env"),
        ("down", "/plate", "/env", "bedplate down --data-dir /plate"),
        ("down", "/share/bedplate", "/env", "bedplate down"),
        (["up", "a b.gguf"], None, None, "bedplate up 'a b.gguf'"),
    ],
)
def test_a_command_means_the_folder_that_it_is_about(
    monkeypatch: pytest.MonkeyPatch,
    words: str | list[str],
    data: str | None,
    environment: str | None,
    told: str,
) -> None:
    """Whether it was chosen by a flag or by a variable that another shell does not have."""
    if environment:
        monkeypatch.setenv("BEDPLATE_DATA_DIR", environment)
    folder = Path(data) if data else None
    assert command(words, folder) == told
    assert quoted(words, folder) == f"`{told}`"


def test_a_program_that_the_shell_does_not_find_has_its_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Relative where the user stands above it, as after `make up`; another one of that name on
    the PATH is not ours."""
    assert program() == "bedplate"
    scripts = Path(sysconfig.get_path("scripts"))
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.chdir(scripts.parent)
    assert program() == f"{scripts.name}/bedplate"
    monkeypatch.chdir(tmp_path)
    assert program() == f"{scripts}/bedplate"
    other = tmp_path / "bedplate"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program() == f"{scripts}/bedplate"
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / "none"))
    assert program() == "bedplate"
