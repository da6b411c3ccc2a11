"""`make up` with a Python that only pretends: what it says of its stages."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Makes a "virtual environment" of itself, and installs anything at once.
PYTHON = """#!/bin/sh
if [ "$2" = venv ]; then
  mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && cp "$0" "$3/bin/bedplate"
fi
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree as it is checked out, and the Python in it."""
    for name in ("Makefile", "tools/need.sh", "requirements"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    return tmp_path


def make_up(tree: Path) -> list[str]:
    """The lines that it says."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["make", "up", f"PYTHON={tree}/python"],
        cwd=tree, env=clean, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_each_stage_of_the_first_start_is_said_and_none_of_a_repeat(tree: Path) -> None:
    """One line before each, with how long it takes, since pip says nothing for minutes."""
    first = make_up(tree)
    assert [line.partition(" (")[0] for line in first] == [
        "making the virtual environment .venv",
        "installing the pinned packages",
        "compiling the native libraries",
        "installing the default model, 100 MB",
    ]
    assert all("second" in line or "minute" in line for line in first)
    assert make_up(tree) == []
