"""Compiled kernels on disk, in the user's cache folder: bytes by a key, safe to delete.

An entry is machine code that will run as us. So the folder and the entry must be ours alone
(owner, mode, no symlink), which is looked at on open descriptors, and an entry holds its key
and a digest of all of it. What is not so is not used: it is made again, with one line in the
log. Entries are written beside and renamed, so two processes may store the same; the folder
is kept below `MOST_BYTES` by removing those that were used longest ago.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from bedplate.core.logging import get_logger

MAGIC = b"bpsimt1\n"
MOST_BYTES = 256 << 20
KEPT = 0.75
"""What is left of a folder that was too large, so that not every store removes some."""
LARGEST = 64 << 20
"""Bytes of an entry; the code of 10,000 instructions takes one or two million."""
ABANDONED_S = 3600
"""Age of a half-written file whose writer is gone."""
_KEY, _DIGEST = 32, 32
_HEAD = len(MAGIC) + _KEY + _DIGEST
log = get_logger("simt.cache")


class _Refused(Exception):
    """An entry or a folder that may not be used; the text says why."""


class Cache:
    """Entries of one folder; every method leaves the caller without an error."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder
        self.most_bytes = most_bytes
        self.hits = self.misses = self.refused = 0

    def find(self, key: bytes) -> bytes | None:
        """The bytes of a key of 32 bytes, or None."""
        try:
            with self._opened() as folder:
                content = _read(folder, key.hex())
            found = _checked(key, content)
        except FileNotFoundError:
            self.misses += 1
            return None
        except (OSError, _Refused) as cause:
            self._refuse(f"{self.folder / key.hex()}: {_words(cause)}")
            return None
        self.hits += 1
        return found

    def store(self, key: bytes, content: bytes) -> None:
        """Keep bytes under a key, if the folder lets us."""
        if len(content) + _HEAD > LARGEST:
            return
        scratch = f".{secrets.token_hex(8)}"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._opened() as folder:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
                descriptor = os.open(scratch, flags, 0o600, dir_fd=folder)
                try:
                    with os.fdopen(descriptor, "wb") as file:
                        file.write(MAGIC + key + _digest(key, content) + content)
                    os.rename(scratch, key.hex(), src_dir_fd=folder, dst_dir_fd=folder)
                except OSError:
                    with contextlib.suppress(OSError):
                        os.unlink(scratch, dir_fd=folder)
                    raise
                self._bound(folder)
        except (OSError, _Refused) as cause:
            self._refuse(f"{self.folder} keeps nothing: {_words(cause)}")

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """The folder, which is ours alone."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.folder, flags)
        try:
            _must_be_ours(os.fstat(descriptor), "the folder")
            yield descriptor
        finally:
            os.close(descriptor)

    def _bound(self, folder: int) -> None:
        """Remove the oldest entries of a folder that is too large, and what nobody finished."""
        now, total = time.time(), 0
        entries: list[tuple[float, int, str]] = []
        for entry in os.scandir(folder):
            try:
                facts = entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # another process was quicker
                continue
            if entry.name.startswith("."):
                if now - facts.st_mtime > ABANDONED_S:
                    _remove(folder, entry.name)
                continue
            entries.append((facts.st_mtime, facts.st_size, entry.name))
            total += facts.st_size
        if total <= self.most_bytes:
            return
        for _, size, name in sorted(entries):
            if total <= KEPT * self.most_bytes:
                return
            _remove(folder, name)
            total -= size

    def _refuse(self, why: str) -> None:
        self.refused += 1
        log.warning("cache_refused", message=f"a kernel is compiled again: {why}")


def _read(folder: int, name: str) -> bytes:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise _Refused("it is no regular file")
        _must_be_ours(facts, "it")
        if facts.st_size > LARGEST:
            raise _Refused(f"it has {facts.st_size} bytes")
        content = file.read(LARGEST + 1)
        with contextlib.suppress(OSError):
            os.utime(descriptor)  # when it was used last
    return content


def _must_be_ours(facts: os.stat_result, what: str) -> None:
    if facts.st_uid != os.geteuid():
        raise _Refused(f"{what} belongs to the user {facts.st_uid}")
    if facts.st_mode & 0o077:
        raise _Refused(f"others may use {what} (mode {facts.st_mode & 0o7777:04o}); chmod go= it")


def _checked(key: bytes, content: bytes) -> bytes:
    head, payload = content[:_HEAD], content[_HEAD:]
    if head != MAGIC + key + _digest(key, payload):
        raise _Refused("it is not what was stored")
    return payload


def _digest(key: bytes, content: bytes) -> bytes:
    return hashlib.sha256(key + content).digest()


def _remove(folder: int, name: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=folder)


def _words(cause: BaseException) -> str:
    return (cause.strerror or str(cause)) if isinstance(cause, OSError) else str(cause)
