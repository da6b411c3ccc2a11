"""API keys: made, stored hashed, compared in constant time.

A key that `make` made carries 256 random bits, so one SHA-256 is enough to
store it. A key that a person chose may be weak and is stored with scrypt.
The stored text says which: `sha256$<hex>` or `scrypt$<salt>$<hex>`.

`KeyRing` answers many requests: it compares against every stored key without
an early exit and remembers accepted weak keys under a per-process secret, so
scrypt is paid once a key and not once a request.

Source: RFC 7914 for scrypt; N=2**14, r=8, p=1 costs about 40 ms and 16 MiB.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping

PREFIX = "bp-"
_MADE = re.compile(re.escape(PREFIX) + r"[A-Za-z0-9_-]{43}")
_SCRYPT = {"n": 1 << 14, "r": 8, "p": 1, "maxmem": 64 << 20}


def make() -> str:
    """A new key: the prefix and 256 random bits in URL-safe base 64."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_key(key: str) -> str:
    """The text to store instead of the key."""
    if _MADE.fullmatch(key):
        return digest(key)
    salt = secrets.token_bytes(16)
    return f"scrypt${salt.hex()}${_scrypt(key, salt)}"


def digest(key: str) -> str:
    """The fast form, for a key that is held in memory alone and never stored."""
    return f"sha256${hashlib.sha256(key.encode()).hexdigest()}"


def verify(key: str, stored: str) -> bool:
    """Whether `stored` was made from `key`; False for malformed stored text."""
    scheme, _, rest = stored.partition("$")
    if scheme == "sha256":
        return hmac.compare_digest(hashlib.sha256(key.encode()).hexdigest(), rest)
    salt, _, digest = rest.partition("$")
    try:
        return scheme == "scrypt" and hmac.compare_digest(_scrypt(key, bytes.fromhex(salt)), digest)
    except ValueError:
        return False


class KeyRing:
    """The stored keys of a server, by name."""

    def __init__(self, stored: Mapping[str, str]) -> None:
        self._strong = {n: s for n, s in stored.items() if s.startswith("sha256$")}
        self._weak = {n: s for n, s in stored.items() if n not in self._strong}
        self._secret = secrets.token_bytes(32)
        self._accepted: dict[bytes, str] = {}

    def __len__(self) -> int:
        return len(self._strong) + len(self._weak)

    def match(self, key: str) -> str | None:
        """The name of the stored key that `key` is, or None.

        Time depends on how many keys are stored, not on which one matches.
        """
        found: str | None = None
        for name, stored in self._strong.items():
            if verify(key, stored):
                found = name
        if found is not None or not self._weak or _MADE.fullmatch(key):
            return found
        mark = hmac.digest(self._secret, key.encode(), "sha256")
        if mark in self._accepted:
            return self._accepted[mark]
        for name, stored in self._weak.items():
            if verify(key, stored):
                found = name
        if found is not None:
            self._accepted[mark] = found
        return found


def _scrypt(key: str, salt: bytes) -> str:
    return hashlib.scrypt(key.encode(), salt=salt, **_SCRYPT).hex()
