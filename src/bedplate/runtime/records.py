"""The rules that the records of a trace keep, whatever file they are read from.

Each reader gives its records in their order, with the number that people count by: a
line of a CSV, a record of a log, an event of a snapshot. What breaks a rule is refused
there with that number, so that no replay sees sums that wrap or a block that is two.
"""

from __future__ import annotations

import numpy as np

from bedplate.runtime.errors import TraceInvalid
from bedplate.runtime.trace import (
    ALLOCATE,
    FREE,
    MOST_RECORDS,
    RECORD,
    SYNC,
    USE,
    USED_ON,
    Trace,
)

MOST_SIZE = 1 << 62
"""Of a request, bytes; sums of a few of them stay below 2^64."""
TIME_END = 1 << 63
POOLS = 5
SHOWN = 40
_CHUNK = 1 << 16


def shown(value: object) -> str:
    """A value of a file as an error shows it: escaped, and no longer than a line."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


class Records:
    """Records of one file in the making; `unit` is what people count in it."""

    def __init__(self, name: str, unit: str) -> None:
        self._name, self._unit = name, unit
        self._live: dict[int, int] = {}
        self._freed: dict[int, int] = {}
        self._last_ns = 0
        self._rows: list[tuple[int, int, int, int, int, int, int, int]] = []
        self._chunks: list[Trace] = []

    def refused(self, number: int, trouble: str) -> TraceInvalid:
        """The error that says what is wrong where."""
        return TraceInvalid(f"{self._name}, {self._unit} {number}: {trouble}")

    def check(
        self, number: int, time_ns: int, address: int, size: int, action: int, pool: int
    ) -> None:
        """Hold one record, the next, to the rules. Raises TraceInvalid."""
        trouble = ""
        if not ALLOCATE <= action <= SYNC:
            trouble = f"an unknown action {action}"
        elif not 0 <= pool < POOLS:
            trouble = f"pool {pool}, and there are {POOLS}, from 0"
        elif not 0 <= size <= MOST_SIZE:
            trouble = f"a size of {shown(size)}; it is from 0 to 2^62 bytes"
        elif not 0 <= address < 1 << 64:
            trouble = f"an address of {shown(address)}; it is from 0 to 2^64"
        elif not 0 <= time_ns < TIME_END:
            trouble = f"a time of {shown(time_ns)} ns; it is from 0 to 2^63"
        elif time_ns < self._last_ns:
            trouble = f"time runs back by {self._last_ns - time_ns:,} ns"
        elif action == ALLOCATE:
            if address in self._live:
                trouble = f"{address:#x} is live since {self._unit} {self._live[address]}"
            elif address or size:
                self._live[address] = number
        elif action == FREE:
            # Nothing at address 0 is what allocators give for a request of no bytes.
            if address in self._live:
                self._freed[address] = number
                del self._live[address]
            elif address in self._freed:
                trouble = f"{address:#x} was freed in {self._unit} {self._freed[address]}"
            elif address or size:
                trouble = f"{address:#x} was not allocated"
        elif action in (USE, USED_ON) and not (address in self._live or address in self._freed):
            trouble = f"{address:#x} was never allocated"
        if trouble:
            raise self.refused(number, trouble)
        self._last_ns = time_ns

    def knows(self, address: int) -> bool:
        """Whether a block was requested there."""
        return address in self._live or address in self._freed

    def add(
        self,
        number: int,
        time_ns: int,
        address: int,
        size: int,
        stream: int,
        action: int,
        pool: int = 2,
        thread: int = 0,
    ) -> None:
        """Check a record and keep it. Raises TraceInvalid."""
        self.check(number, time_ns, address, size, action, pool)
        if not self._rows and len(self._chunks) * _CHUNK >= MOST_RECORDS:
            raise self.refused(number, f"more than {MOST_RECORDS:,} records; cut the trace")
        self._rows.append((time_ns, address, size, stream, action, pool, thread, 0))
        if len(self._rows) == _CHUNK:
            self._pack()

    def trace(self) -> Trace:
        """All that was kept, the first at time 0."""
        self._pack()
        made = np.concatenate(self._chunks) if self._chunks else np.array([], RECORD)
        if len(made):
            made["time_ns"] -= made["time_ns"][0]
        return made

    def _pack(self) -> None:
        if self._rows:
            # A tuple is ten times a record: 3.7 GB of them were made of one file.
            self._chunks.append(np.array(self._rows, RECORD))
            self._rows = []
