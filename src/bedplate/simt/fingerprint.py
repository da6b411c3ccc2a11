"""What this machine's code is: so that what it made can be told from what it would make now.

`code` reads every file of the system, for texts that people compare; `files` looks at sizes
and times alone, which takes a tenth of that and changes whenever a file is written.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent


def _sources(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    for entry in sorted(os.scandir(folder), key=lambda found: found.name):
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(entry.path)
        elif entry.name.endswith(".py"):
            yield entry


@cache
def code() -> str:
    """Sixteen hexadecimal digits of the system's own text."""
    digest = hashlib.sha256()
    for entry in _sources(_FOLDER):
        digest.update(os.path.relpath(entry.path, _FOLDER).encode() + b"\0")
        digest.update(Path(entry.path).read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@cache
def files() -> str:
    """The same of the names, sizes and times of its files."""
    digest = hashlib.sha256()
    for entry in _sources(_FOLDER):
        facts = entry.stat()
        digest.update(f"{entry.path}\0{facts.st_size}\0{facts.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:16]
