"""What goes wrong in the runtime.

::

    RuntimeFault                exit 1
    ├── OutOfMemory             exit 1   what there was, and what would have fitted
    │   └── OverQuota           exit 1   a pool may not grow; others are unaffected
    ├── SteadyStateViolation    exit 1   sealed, and the driver would have been called
    ├── BadBlock                exit 1   freed before, or of another allocator
    ├── BatchFailed             exit 1   a batch that was waited for, with tag and sentence
    ├── StreamDeadline          exit 1   a fence or room in a ring did not come in time
    ├── SchedulerStopped        exit 1   a submit to what has stopped
    ├── HazardFound             exit 1   accesses that nothing orders, with both sites
    └── TraceInvalid            exit 2   a trace that cannot be read, with the line
"""

from __future__ import annotations

from bedplate.core.errors import BedplateError, UsageError


class RuntimeFault(BedplateError):
    """Root of this system's errors."""

    code = "runtime.internal"


class OptionsInvalid(RuntimeFault, UsageError):
    """An argument or option that makes no sense."""

    code = "runtime.invalid_argument"


class OutOfMemory(RuntimeFault):
    """A request that does not fit."""

    code = "runtime.out_of_memory"


class OverQuota(OutOfMemory):
    """A request that would take its pool over its quota."""

    code = "runtime.over_quota"


class SteadyStateViolation(RuntimeFault):
    """A driver call after `seal`."""

    code = "runtime.steady_state"


class BadBlock(RuntimeFault):
    """A handle that is not of a live block."""

    code = "runtime.bad_block"


class BatchFailed(RuntimeFault):
    """What was waited for failed; `status` is the HAL's code of the cause."""

    code = "runtime.batch_failed"

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class StreamDeadline(RuntimeFault):
    """A deadline passed first; nothing else has changed."""

    code = "runtime.deadline"


class SchedulerStopped(RuntimeFault):
    """The scheduler takes no more work."""

    code = "runtime.stopped"


class HazardFound(RuntimeFault):
    """Two accesses that nothing orders, or one of freed memory."""

    code = "runtime.hazard"


class PolicyBroken(RuntimeFault):
    """A plugin's policy gave memory that it has not, or that is somebody's."""

    code = "runtime.policy_broken"


class TraceInvalid(RuntimeFault, UsageError):
    """A trace, snapshot or log that is not what it says."""

    code = "runtime.trace_invalid"


_BY_STATUS: dict[int, type[RuntimeFault]] = {
    -1: OptionsInvalid,
    -2: OutOfMemory,
    -3: OverQuota,
    -4: SteadyStateViolation,
    -5: BadBlock,
}


def from_status(status: int, text: str) -> RuntimeFault:
    """The typed error of a negative status; the remedy is what follows the last `;`."""
    kind = _BY_STATUS.get(status, RuntimeFault)
    message, found, remedy = text.rpartition("; ")
    return kind(message, remedy=remedy) if found else kind(text)
