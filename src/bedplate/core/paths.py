"""Where things lie: data, cache, sockets and the native libraries.

Nothing else in the tree computes these. Folders are named, not made, except
by the `make_` functions, which make them private to the user (mode 0700).
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import bedplate
from bedplate.core.errors import BedplateError, EnvironmentLacks, UsageError


def data_dir(flag: str | None = None, environment: Mapping[str, str] | None = None) -> Path:
    """The folder of everything that must be kept.

    `flag` wins over `BEDPLATE_DATA_DIR`, which wins over the default:
    `/var/lib/bedplate` under systemd's `STATE_DIRECTORY`, else
    `~/.local/share/bedplate`.
    """
    env = os.environ if environment is None else environment
    if chosen := flag or env.get("BEDPLATE_DATA_DIR"):
        return _absolute(chosen)
    if state := env.get("STATE_DIRECTORY"):
        return Path(state.split(":")[0])
    home = env.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(home) / "bedplate"


def cache_dir(environment: Mapping[str, str] | None = None) -> Path:
    """The folder of what can be made again; safe to delete at any time."""
    env = os.environ if environment is None else environment
    if chosen := env.get("BEDPLATE_CACHE_DIR"):
        return _absolute(chosen)
    home = env.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "bedplate"


def run_dir(data: Path) -> Path:
    """Sockets, process ids and internal keys of a running platform."""
    return data / "run"


class FolderUnusable(EnvironmentLacks):
    """The machine does not let us write there: permission, read-only, or full."""

    code = "core.folder"


FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""What an OSError says of a disk, or a share of one, that is full."""
# ENOENT: only the kernel's own file systems refuse a new folder in that way.
_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, *FULL}
_ELSEWHERE = "choose another with --data-dir or BEDPLATE_DATA_DIR"


def make_private(folder: Path) -> Path:
    """Make `folder` and the parents it lacks, each with mode 0700.

    Raises `FolderUnusable` when the machine forbids it, `UsageError` when the
    path cannot be a folder.
    """
    try:
        for missing in reversed([f for f in (folder, *folder.parents) if not f.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(exist_ok=True)  # says so when it is no folder
        with tempfile.TemporaryFile(dir=folder):
            pass  # asking for permission says too much on some file systems
    except OSError as cause:
        raise unusable(folder, cause) from cause
    return folder


def unusable(folder: Path, cause: OSError) -> BedplateError:
    """The error that `folder` cannot be written: `FolderUnusable` when the machine is at
    fault, `UsageError` when the path is."""
    kind = FolderUnusable if cause.errno in _NOT_ALLOWED else UsageError
    return kind(
        f"cannot write in the folder {folder}: {os.strerror(cause.errno or 0)}",
        code="core.folder",
        remedy="free space there, or " + _ELSEWHERE if cause.errno in FULL else _ELSEWHERE,
    )


def native_library_dir() -> Path:
    """The folder that holds `libbedplate_*.so`, `hal.d/` and `kernels/`.

    In an installed wheel it lies beside the Python files; in an editable
    install the Python files stay in the source tree and the libraries go to
    site-packages. Both are entries of the package's own search path.

    Raises `EnvironmentLacks` when the native part was never built.
    """
    for entry in bedplate.__path__:
        candidate = Path(entry) / "lib"
        if candidate.is_dir():
            return candidate
    raise EnvironmentLacks(
        "the native libraries of Bedplate are not built",
        code="core.native_missing",
        remedy="run `make build`, or `pip install .`",
    )


def _absolute(text: str) -> Path:
    return Path(os.path.abspath(os.path.expanduser(text)))
