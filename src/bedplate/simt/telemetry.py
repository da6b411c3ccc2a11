"""What a machine has done since it was made, as whole numbers that never fall.

Counters are added to under a lock, because launches may come from several threads; a reading
is a copy in which the numbers belong together.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

NAMES = (
    "launches",
    "launches_failed",
    "blocks",
    "threads",
    "busy_ns",
    "kernels_compiled",
    "kernels_from_disk",
    "allocations",
    "allocated_bytes",
    "freed_bytes",
    "printf_calls",
    "printf_lost",
)
"""`blocks` and `threads` are those of launches that ended well; `busy_ns` is time in compiled
code as the caller waited for it; `printf_calls` counts the lost too."""


class Counters:
    """The counters of one machine."""

    def __init__(self) -> None:
        self._values = dict.fromkeys(NAMES, 0)
        self._lock = threading.Lock()

    def add(self, **amounts: int) -> None:
        """Add to some; ValueError for a name that is none or an amount below zero."""
        wrong = [f"{name}={amount}" for name, amount in amounts.items() if amount < 0]
        wrong += [name for name in amounts if name not in self._values]
        if wrong:
            raise ValueError(f"no counter can take {', '.join(wrong)}")
        with self._lock:
            for name, amount in amounts.items():
                self._values[name] += amount

    def read(self) -> Mapping[str, int]:
        """All of them now."""
        with self._lock:
            return dict(self._values)
