"""Health that means progress, not a process that answers.

A `HealthSource` says whether its work advances. `Progress` is the rule that
engine, gateway and agents share: having work and making no step for too long
is a stall; idle is healthy however long it lasts, and so is saturated.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from bedplate.core.clock import Clock, RealClock


class HealthState(StrEnum):
    """Where a service is in its life; `ready` and `draining` are healthy."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    STALLED = "stalled"
    FAILED = "failed"

    @property
    def healthy(self) -> bool:
        """Whether a supervisor should leave it alone."""
        return self not in (HealthState.STALLED, HealthState.FAILED)


@dataclass(frozen=True, slots=True)
class Health:
    """State, the reason in one sentence, and when work last advanced.

    `last_progress_ns` is monotonic; None before the first step.
    """

    state: HealthState
    reason: str
    last_progress_ns: int | None


class HealthSource(Protocol):
    """Whatever `/health`, `/ready` and the supervisor ask."""

    def health(self) -> Health:
        """The health now; never blocks and never raises."""
        ...


class Progress:
    """Tells a stall from idleness; safe to call from any thread.

    `stall_after_ns` is how long work may wait without one step.
    """

    def __init__(self, stall_after_ns: int, clock: Clock | None = None) -> None:
        self._stall_after_ns = stall_after_ns
        self._clock = clock or RealClock()
        self._lock = threading.Lock()
        self._state = HealthState.STARTING
        self._reason = "not started"
        self._pending = 0
        self._since_ns = self._clock.monotonic_ns()
        self._last_progress_ns: int | None = None

    def enter(self, state: HealthState, reason: str = "") -> None:
        """Move to another state of life."""
        with self._lock:
            self._state, self._reason = state, reason
            self._since_ns = self._clock.monotonic_ns()

    def allow(self, stall_after_ns: int) -> None:
        """From now on, work may wait so long without a step."""
        with self._lock:
            self._stall_after_ns = stall_after_ns

    def step(self, pending: int) -> None:
        """Work advanced; `pending` pieces of work are left."""
        with self._lock:
            self._last_progress_ns = self._since_ns = self._clock.monotonic_ns()
            self._pending = pending

    def arrived(self, pending: int) -> None:
        """New work came; the stall clock starts if there was none before."""
        with self._lock:
            if self._pending == 0:
                self._since_ns = self._clock.monotonic_ns()
            self._pending = pending

    def health(self) -> Health:
        """The health now."""
        with self._lock:
            waited_ns = self._clock.monotonic_ns() - self._since_ns
            stalled = self._pending > 0 and waited_ns > self._stall_after_ns
            if stalled and self._state in (HealthState.READY, HealthState.DRAINING):
                reason = f"no step for {waited_ns / 1e9:.1f} s with {self._pending} pending"
                return Health(HealthState.STALLED, reason, self._last_progress_ns)
            return Health(self._state, self._reason, self._last_progress_ns)
