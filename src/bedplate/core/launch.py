"""The record of one kernel launch (launch/1).

Written by the software GPU, the driver, the compiler's runner and hal, in one
form, so a fault reads the same wherever it happened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

SCHEMA = "bedplate.launch/1"
LaunchStatus = Literal["ok", "fault", "deadlock", "budget", "cancelled", "device_lost"]
Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class LaunchFault:
    """Where a launch went wrong; `address` is the device address touched."""

    kind: str
    message: str
    file: str | None = None
    line: int | None = None
    block: Triple | None = None
    thread: Triple | None = None
    address: int | None = None


@dataclass(frozen=True, slots=True)
class ChainLink:
    """One step of what led to the launch, such as submit or start."""

    kind: str
    time_ns: int


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """What was launched, how it ended and what it counted.

    `counters` uses the profiler's own names; a fault is present exactly when
    the status is `fault`.
    """

    kernel: str
    backend: str
    device: str
    arch: str
    grid: Triple
    block: Triple
    status: LaunchStatus
    elapsed_ns: int
    dynamic_shared_bytes: int = 0
    seed: int | None = None
    schedule: str | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    fault: LaunchFault | None = None
    chain: Sequence[ChainLink] = ()
    schema: str = SCHEMA

    def __post_init__(self) -> None:
        if (self.status == "fault") != (self.fault is not None):
            raise ValueError(f"a launch with status {self.status} and fault {self.fault}")
