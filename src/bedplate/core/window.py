"""Short windows of CPU time, kept only when nothing disturbed them.

On a shared machine a long run is always disturbed, a window of 0.2 ms seldom.
The sampler pins its thread, runs a probe in windows, and drops each one in
which the thread was switched out, the hypervisor stole time, or the clock
fell. What was dropped is counted by reason, and too few kept windows give no
number, only the reason: an undisturbed guess is still a guess.

`MachineLoad` says how busy the whole machine was, for the record beside a
measurement.
"""

from __future__ import annotations

import os
import resource
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bedplate.core.clock import Clock, RealClock
from bedplate.core.samples import Summary, quantile, summarise

MINIMUM_KEPT = 30
# A calibration that takes this much longer than the fastest one marks a clock
# dip; a dependent chain of fixed length varies by under 2 % at a fixed clock.
CLOCK_DIP = 1.10
_CHAIN = 400


@dataclass(frozen=True, slots=True)
class WindowReport:
    """What a run of windows gave.

    `values_ns` are the kept windows' elapsed times divided by the operations
    of a window; `summary` is None, with `reason`, below `MINIMUM_KEPT`.
    """

    values_ns: Sequence[float]
    dropped: dict[str, int]
    summary: Summary | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class MachineLoad:
    """CPU time of the whole machine between two readings.

    Shares are in milli: 1000 is every core of the machine, all the time.
    """

    busy_milli: int
    steal_milli: int
    load_average: float


def sample(
    probe: Callable[[], None],
    *,
    operations: int,
    windows: int,
    minimum_kept: int = MINIMUM_KEPT,
    clock: Clock | None = None,
) -> WindowReport:
    """Run `probe` in `windows` windows on one pinned core.

    `probe` performs `operations` operations and should take at most 0.2 ms.
    The thread's affinity is restored afterwards.
    """
    source = clock or RealClock()
    raw: list[_Window] = []
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        for _ in range(windows):
            raw.append(_run(probe, source))
    finally:
        os.sched_setaffinity(0, allowed)
    return judge(raw, operations=operations, minimum_kept=minimum_kept)


@dataclass(frozen=True, slots=True)
class _Window:
    elapsed_ns: int
    calibration_ns: int
    switches: int
    steal_ticks: int


def judge(raw: Sequence[_Window], *, operations: int, minimum_kept: int) -> WindowReport:
    """Keep or drop each window, with exactly one reason for each drop."""
    dropped: Counter[str] = Counter()
    kept: list[float] = []
    # The fastest tenth stands for the undisturbed clock.
    limit_ns = CLOCK_DIP * quantile([w.calibration_ns for w in raw], 0.1) if raw else 0.0
    for window in raw:
        if window.switches:
            dropped["context_switch"] += 1
        elif window.steal_ticks:
            dropped["steal"] += 1
        elif window.calibration_ns > limit_ns:
            dropped["clock_dip"] += 1
        else:
            kept.append(window.elapsed_ns / operations)
    if len(kept) < max(1, minimum_kept):
        reason = f"{len(kept)} undisturbed windows of {len(raw)}, {minimum_kept} needed"
        return WindowReport(kept, dict(dropped), None, reason)
    return WindowReport(kept, dict(dropped), summarise(kept), None)


def _run(probe: Callable[[], None], clock: Clock) -> _Window:
    steal_before = _cpu_ticks()[1]
    usage_before = resource.getrusage(resource.RUSAGE_THREAD)
    before_ns = _calibrate(clock)
    start_ns = clock.monotonic_ns()
    probe()
    elapsed_ns = clock.monotonic_ns() - start_ns
    after_ns = _calibrate(clock)
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    switches = usage.ru_nivcsw - usage_before.ru_nivcsw + usage.ru_nvcsw - usage_before.ru_nvcsw
    return _Window(elapsed_ns, max(before_ns, after_ns), switches, _cpu_ticks()[1] - steal_before)


def _calibrate(clock: Clock) -> int:
    """Elapsed time of a dependent multiply chain of fixed length."""
    value = 3
    start_ns = clock.monotonic_ns()
    for _ in range(_CHAIN):
        value = value * 5 & 0xFFFF
    return clock.monotonic_ns() - start_ns


@dataclass(slots=True)
class LoadSampler:
    """Measures `MachineLoad` from its making, or its last reading, to now."""

    _last: tuple[int, int, int] = field(default_factory=lambda: _cpu_ticks())  # noqa: PLW0108 (defined below)

    def read(self) -> MachineLoad:
        """The load since the last reading; zero when no tick has passed."""
        now = _cpu_ticks()
        busy, steal, total = (a - b for a, b in zip(now, self._last, strict=True))
        self._last = now
        whole = max(total, 1)
        return MachineLoad(1000 * busy // whole, 1000 * steal // whole, os.getloadavg()[0])


def _cpu_ticks() -> tuple[int, int, int]:
    """Busy, stolen and all ticks of the machine since boot.

    Source: proc(5), /proc/stat, fields of the line `cpu`.
    """
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    user, nice, system, idle, iowait, irq, softirq, steal = ticks
    busy = user + nice + system + irq + softirq + steal
    return busy, steal, busy + idle + iowait
