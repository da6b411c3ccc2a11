"""Code of kernels that was made before: what a key is made of, and which cache it is in.

A key names all that the code depends on: the text, the kernel, the options, LLVM, the
processor's features, and this system's own files. Parts are kept apart by zeros, so that no
two lists are one key.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from bedplate.core.paths import cache_dir
from bedplate.simt import fingerprint
from bedplate.simt.cache import Cache
from bedplate.simt.schedule import Order

VARIABLE = "BEDPLATE_SIMT_CACHE"
"""`0` compiles every kernel anew and keeps none."""
ORDERS: tuple[Order, ...] = ("lowest", "its", "ipdom", "adversarial")


def digest(text: str) -> str:
    """What stands for a PTX text in keys."""
    return hashlib.sha256(text.encode()).hexdigest()


def opened() -> Cache | None:
    """The user's cache; None when it is turned off."""
    if os.environ.get(VARIABLE) == "0":
        return None
    return _in(cache_dir() / "simt")


@cache
def _in(folder: Path) -> Cache:
    return Cache(folder)


def code(parts: Sequence[str], make: Callable[[], tuple[Order, bytes]]) -> tuple[Order, bytes]:
    """The order and the object file for a key, from the cache or made and stored."""
    from bedplate.simt import compiler

    kept = opened()
    if kept is None:
        return make()
    every = (fingerprint.files(), compiler.host_key(), *parts)
    key = hashlib.sha256("\0".join(every).encode()).digest()
    found = kept.find(key)
    if found:
        return ORDERS[found[0]], found[1:]
    order, made = make()
    kept.store(key, bytes([ORDERS.index(order)]) + made)
    return order, made
