"""The counting driver: every call of a backend that makes, takes or gives back something.

    with counted(device) as calls:
        serve()
    assert not calls                    # or {"mem.create": 2, "mem.release": 2}

It stands in the ABI itself: the functions of the backend's tables are replaced by ones
that count and go on, so native code that holds the table is counted like Python. What a
steady program calls all the time (submit, launch, signal, wait, query, describe) is left
as it is. The tables belong to all devices of a backend in this process: their calls count
too, and only one may count at a time.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bedplate.hal import abi
from bedplate.hal.errors import InvalidArgument
from bedplate.hal.native import ffi

if TYPE_CHECKING:
    from bedplate.hal.device import Device

TABLES = ("mem", "queue", "timeline", "module", "capture")
STEADY = frozenset(
    {
        "capture.launch",
        "mem.describe",
        "module.info",
        "module.kernel",
        "module.kernel_info",
        "queue.flush",
        "queue.submit",
        "timeline.query",
        "timeline.signal",
        "timeline.wait_host",
    }
)
"""Calls that neither make nor give back anything."""

_one = threading.Lock()
_counts = threading.Lock()


@contextmanager
def counted(device: Device) -> Iterator[Counter[str]]:
    """Calls by `<table>.<function>` while the context lasts, of every thread.

    Raises InvalidArgument while another one counts.
    """
    if not _one.acquire(blocking=False):
        raise InvalidArgument("the driver's calls are being counted already")
    seen: Counter[str] = Counter()
    api = ffi.cast("bp_api *", device.native_api)
    true = {name: getattr(api, name) for name in TABLES}
    # What native code may still be inside of lives as long as the context's tables do.
    kept: list[Any] = []
    try:
        for name, table in true.items():
            if table != ffi.NULL:
                setattr(api, name, _counting(name, table, seen, kept))
        yield seen
    finally:
        for name, table in true.items():
            setattr(api, name, table)
        _retired.append(kept)
        _one.release()


_retired: list[list[Any]] = []
"""Tables that were in use: a thread may have read a pointer to one and not called it yet."""


def _counting(name: str, table: Any, seen: Counter[str], kept: list[Any]) -> Any:
    """A copy of a table whose functions count."""
    kind = ffi.typeof(table).item
    copy = ffi.new(f"{kind.cname} *", table[0])
    kept.append(copy)
    for field, facts in kind.fields:
        function = getattr(table, field)
        label = f"{name}.{field}"
        if facts.type.kind != "function" or function == ffi.NULL or label in STEADY:
            continue
        # What the caller hears when the count itself is interrupted: nothing was done.
        callback = ffi.callback(facts.type, _counter(label, function, seen), error=abi.BP_INTERNAL)
        kept.append(callback)
        setattr(copy, field, callback)
    return copy


def _counter(label: str, function: Any, seen: Counter[str]) -> Any:
    def count(*words: Any) -> Any:
        with _counts:
            seen[label] += 1
        return function(*words)

    return count
