"""Files that are never half written.

`replace` writes beside the target and renames, so a reader sees the old or
the new content and a crash leaves the old. With `durable` the content and the
rename are on disk before it returns. A device, a pipe or a socket keeps its place and
is written into.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from bedplate.core.errors import EnvironmentLacks, UsageError
from bedplate.core.paths import FULL


def replace(path: Path, content: bytes | str, *, mode: int = 0o644, durable: bool = True) -> None:
    """Write `content` to `path` in one step, with permission bits `mode`.

    Raises `UsageError` when the folder is missing or cannot be written,
    `EnvironmentLacks` when the disk is full; the old file is then as it was.
    """
    data = content.encode() if isinstance(content, str) else content
    scratch = ""
    try:
        if _is_special(path):
            path.write_bytes(data)
            return
        descriptor, scratch = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(scratch, path)
        if durable:
            sync_folder(path.parent)
    except OSError as cause:
        if scratch:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(scratch)
        full = cause.errno in FULL
        raise (EnvironmentLacks if full else UsageError)(
            f"cannot write {path}: {cause.strerror}",
            code="core.write",
            remedy="free space there" if full else "check that the folder exists and is writable",
        ) from cause


def _is_special(path: Path) -> bool:
    """Whether a rename would put a plain file in the place of something else."""
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        return False
    return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind))


def sync_folder(folder: Path) -> None:
    """Make a rename or a new file in `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
