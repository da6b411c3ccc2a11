"""The API keys of a data directory: one JSON file of names and hashes.

`BEDPLATE_API_KEY` wins and stores nothing. Otherwise the first start makes a key,
stores its hash and returns the key once, to be shown; it cannot be read again.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

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
    """
    env = os.environ if environment is None else environment
    if given := env.get("BEDPLATE_API_KEY"):
        return keys.KeyRing({"environment": keys.digest(given)}), None
    make_private(data)
    path = data / FILE
    try:
        lock = open(data / f".{FILE}.lock", "w")  # noqa: SIM115 (closed below)
    except OSError as cause:
        raise unusable(data, cause) from cause
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
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
