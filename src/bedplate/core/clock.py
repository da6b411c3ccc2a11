"""Time as something that is handed in.

Code that waits or stamps takes a `Clock`, so tests and simulations run on
`FakeClock` and never sleep. Durations and deadlines use `monotonic_ns`, whose
origin is arbitrary; `wall_ns` is Unix time and may jump.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Two times in nanoseconds."""

    def monotonic_ns(self) -> int:
        """Nanoseconds since an arbitrary origin; never falls."""
        ...

    def wall_ns(self) -> int:
        """Unix time in nanoseconds; may jump either way."""
        ...


class RealClock:
    """The clock of this machine."""

    def monotonic_ns(self) -> int:
        """Nanoseconds of the system's monotonic clock."""
        return time.monotonic_ns()

    def wall_ns(self) -> int:
        """Unix time in nanoseconds."""
        return time.time_ns()


class FakeClock:
    """A clock that moves only when told to.

    `step_wall` moves the wall clock alone, as an operator or NTP would.
    """

    def __init__(self, monotonic_ns: int = 0, wall_ns: int = 1_700_000_000_000_000_000) -> None:
        self._monotonic_ns = monotonic_ns
        self._wall_ns = wall_ns

    def monotonic_ns(self) -> int:
        """The monotonic time it was advanced to."""
        return self._monotonic_ns

    def wall_ns(self) -> int:
        """The wall time it was advanced or stepped to."""
        return self._wall_ns

    def advance(self, duration_ns: int) -> None:
        """Let `duration_ns` pass on both clocks; time never flows back."""
        if duration_ns < 0:
            raise ValueError(f"a clock cannot advance by {duration_ns} ns")
        self._monotonic_ns += duration_ns
        self._wall_ns += duration_ns

    def step_wall(self, jump_ns: int) -> None:
        """Set the wall clock forward or back; the monotonic one stays."""
        self._wall_ns += jump_ns
