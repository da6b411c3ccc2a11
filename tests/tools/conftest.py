"""A small git tree in which checks can be tried."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[[str, str], Path]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """An empty git tree."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


@pytest.fixture
def write(tree: Path) -> Write:
    """Writes a file of the tree, making its folders."""

    def write(name: str, content: str) -> Path:
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    return write
