"""The files that the checks look at: tracked ones, and new ones git would take."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path


def files(root: Path, *suffixes: str) -> Iterator[Path]:
    """Existing files of the tree with one of the suffixes, or all of them."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others"]
    listed = subprocess.run(
        [*command, "--exclude-standard"], check=True, capture_output=True, text=True
    ).stdout
    for name in sorted(set(listed.split("\0"))):
        path = root / name
        if name and path.is_file() and (not suffixes or path.suffix in suffixes):
            yield path


def text(path: Path) -> str | None:
    """The text of a file, or None when it is binary."""
    content = path.read_bytes()
    if b"\0" in content[:8192]:
        return None
    return content.decode(errors="replace")
