"""The API keys of a data directory: one JSON file of names and hashes.

`BEDPLATE_API_KEY` wins and stores nothing. Otherwise the first start makes a key,
stores its hash and returns the key once, to be shown; it cannot be read again.
A start that may still fail holds the store until the key was shown or forgotten,
so that no other start ever lives by a key that nobody has seen.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from bedplate.core import keys
from bedplate.core.command import quoted
from bedplate.core.errors import UsageError
from bedplate.core.files import replace
from bedplate.core.paths import make_private, unusable

FILE = "keys.json"
SCHEMA = "bedplate.keys/1"
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")  # it travels in a header


def load_or_make(
    data: Path, environment: Mapping[str, str] | None = None
) -> tuple[keys.KeyRing, str | None]:
    """The keys to accept, and the key made just now or None.

    Raises `UsageError` when the file is damaged, `EnvironmentLacks` when the machine
    forbids to write in the folder or has no space; processes that start together agree on one key.
    Waits while another start holds the store, see `try_hold`.
    """
    env = os.environ if environment is None else environment
    if given := env.get("BEDPLATE_API_KEY"):
        return keys.KeyRing({"environment": keys.digest(given)}), None
    with _lock_file(data) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _found_or_made(data)


def try_hold(data: Path) -> Held | None:
    """The stored keys, held against other starts until closed; None while another holds them.

    Looks at no environment. Raises what `load_or_make` does.
    """
    lock = _lock_file(data)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        made = _found_or_made(data)[1]
    except BlockingIOError:
        lock.close()
        return None
    except BaseException:
        lock.close()
        raise
    return Held(data, made, lock)


@dataclass(frozen=True)
class Held:
    """The store while no other start may make or read a key; `made` is one made just now.

    `load` does not wait: the processes of the start that holds it read the key.
    """

    data: Path
    made: str | None
    _lock: IO[str] = field(repr=False, compare=False)

    def forget(self) -> None:
        """Remove the key that was made, which nobody will see; others stay."""
        if self.made is not None:
            forget(self.data)

    def close(self) -> None:
        """Let other starts go on."""
        self._lock.close()


def _lock_file(data: Path) -> IO[str]:
    make_private(data)
    try:
        return open(data / f".{FILE}.lock", "w")
    except OSError as cause:
        raise unusable(data, cause) from cause


def _found_or_made(data: Path) -> tuple[keys.KeyRing, str | None]:
    path = data / FILE
    if path.exists():
        return keys.KeyRing(read(path)), None
    key = keys.make()
    write(path, {"default": keys.hash_key(key)})
    return keys.KeyRing({"default": keys.hash_key(key)}), key


def load(data: Path, environment: Mapping[str, str] | None = None) -> keys.KeyRing:
    """The keys to accept. Makes none: a key made where nobody sees it is lost.

    Raises `UsageError` when there is no key.
    """
    env = os.environ if environment is None else environment
    if given := env.get("BEDPLATE_API_KEY"):
        return keys.KeyRing({"environment": keys.digest(given)})
    if not (data / FILE).exists():
        raise UsageError(
            f"{data / FILE} is missing, so no key opens this platform",
            code="core.key_file",
            remedy=f"run {quoted('down', data)} and {quoted('up', data)}, "
            "which makes a key and shows it",
        )
    return keys.KeyRing(read(data / FILE))


def check(data: Path) -> None:
    """Raise what `load_or_make` would, and make no key."""
    make_private(data)
    if (data / FILE).exists():
        read(data / FILE)


def read(path: Path) -> dict[str, str]:
    """Names and hashes. Raises `UsageError` when the file is damaged."""
    try:
        document = json.loads(path.read_text("utf-8"))
        stored = document["keys"]
        if document["schema"] != SCHEMA or not all(
            _NAME.fullmatch(name) and isinstance(value, str) for name, value in stored.items()
        ):
            raise ValueError(SCHEMA)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as cause:
        raise UsageError(
            f"{path} does not hold API keys of schema {SCHEMA}",
            code="core.key_file",
            remedy="restore it from a backup, or remove it to have a new key made",
        ) from cause
    return dict(stored)


def write(path: Path, stored: Mapping[str, str]) -> None:
    """Replace the file in one step, readable by its owner alone."""
    document = {"schema": SCHEMA, "keys": dict(stored)}
    replace(path, json.dumps(document, indent=1) + "\n", mode=0o600)


def forget(data: Path) -> None:
    """Remove all keys; the next start makes a new one."""
    (data / FILE).unlink(missing_ok=True)
