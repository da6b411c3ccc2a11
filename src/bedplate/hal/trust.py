"""Whether a file may be loaded into this process.

A file is code that will run as us, so nobody else may be able to change it:
it and all directories above it belong to root or to us, the file is not
writable by group or others, its directory and those above it are not writable
by others, nor by a group that holds anyone else. One above may be when it has
the sticky bit, as /tmp does: there each may move only what is his own. A
symlink must stay in its directory. Backends are also held to the hash of their
manifest, which proves that the file is the one that was registered.

A file is opened once: what is checked, hashed, asked in a child and loaded is
one inode, whatever is put at its path meanwhile.
"""

from __future__ import annotations

import contextlib
import grp
import hashlib
import os
import pwd
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cffi import FFI

from bedplate.hal.errors import BackendRefused

_AT_SECURE = 23


@dataclass(frozen=True, slots=True)
class TrustedFile:
    """A file that may be loaded, open for reading: its real path and its descriptor."""

    path: Path
    descriptor: int

    def read(self, most: int) -> bytes:
        """Its first bytes, at most so many."""
        return os.pread(self.descriptor, most, 0)


@contextlib.contextmanager
def opened(path: Path, sha256: str | None = None) -> Iterator[TrustedFile]:
    """Open a file that may be loaded. Raises BackendRefused with the reason otherwise.

    With `sha256` the content must match too.
    """
    if not path.is_absolute():
        raise BackendRefused(f"{path} is not an absolute path")
    try:
        real = path.resolve(strict=True)
        # Non-blocking, because opening a pipe would wait for its other end.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(real, flags)
    except (OSError, RuntimeError, ValueError) as cause:
        raise BackendRefused(f"{path} cannot be read: {_reason(cause)}") from cause
    try:
        _check_opened(path, real, os.fstat(descriptor))
        if sha256 is not None and (found := _digest(descriptor)) != sha256:
            raise BackendRefused(
                f"{path} has the SHA-256 {found[:16]}..., its manifest says {sha256[:16]}...",
                remedy="install the backend again",
            )
        yield TrustedFile(real, descriptor)
    finally:
        os.close(descriptor)


def check_file(path: Path, sha256: str | None = None) -> Path:
    """The real path of a file that may be loaded now; BackendRefused with the reason."""
    with opened(path, sha256) as file:
        return file.path


def _check_opened(path: Path, real: Path, facts: os.stat_result) -> None:
    if real.parent != path.parent.resolve():
        raise BackendRefused(f"{path} is a symlink that leads out of its directory")
    if not stat.S_ISREG(facts.st_mode):
        raise BackendRefused(f"{path} is not a regular file")
    _check_owner(path, facts)
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise BackendRefused(
            f"{path} may be written by others (mode {facts.st_mode & 0o7777:04o})",
            remedy=f"chmod go-w {path}",
        )
    check_directory(real.parent)


def check_directory(folder: Path) -> None:
    """Refuse a directory that others could put files into; BackendRefused."""
    try:
        facts = folder.stat()
    except OSError as cause:
        raise BackendRefused(f"{folder} cannot be read: {_reason(cause)}") from cause
    _check_owner(folder, facts)
    _check_writers(folder, facts)
    for above in folder.parents:
        facts = above.stat()
        # Whoever owns it may put another directory in the place of ours.
        _check_owner(above, facts)
        if not facts.st_mode & stat.S_ISVTX:
            _check_writers(above, facts)


def digest(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(descriptor: int) -> str:
    # Its own offset, because the child that is asked inherits this descriptor's.
    with open(os.dup(descriptor), "rb") as file:
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest()


def secure_execution() -> bool:
    """Whether this process runs with more rights than its caller.

    Then the environment is the caller's and is not believed (AT_SECURE:
    set-user-id, set-group-id or file capabilities).
    """
    if os.getuid() != os.geteuid() or os.getgid() != os.getegid():
        return True
    libc = FFI()
    libc.cdef("unsigned long getauxval(unsigned long type);")
    return bool(libc.dlopen(None).getauxval(_AT_SECURE))


def _check_owner(path: Path, facts: os.stat_result) -> None:
    if facts.st_uid not in (0, os.geteuid()):
        raise BackendRefused(
            f"{path} belongs to the user {_user(facts.st_uid)}",
            remedy="it must belong to root or to the user who runs this",
        )


def _check_writers(folder: Path, facts: os.stat_result) -> None:
    mode = facts.st_mode
    if mode & stat.S_IWOTH or (mode & stat.S_IWGRP and _shared(facts.st_gid)):
        raise BackendRefused(
            f"the directory {folder} may be written by others (mode {mode & 0o7777:04o})",
            remedy=f"chmod go-w {folder}",
        )


def _shared(gid: int) -> bool:
    """Whether a group holds anyone but root and us."""
    allowed = {0, os.geteuid()}
    try:
        members = {pwd.getpwnam(name).pw_uid for name in grp.getgrgid(gid).gr_mem}
    except KeyError:
        return True
    members |= {user.pw_uid for user in pwd.getpwall() if user.pw_gid == gid}
    return bool(members - allowed)


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _reason(cause: BaseException) -> str:
    return getattr(cause, "strerror", None) or str(cause)
