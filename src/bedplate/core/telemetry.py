"""Telemetry of a device: identity, clocks, power, temperature, throttling.

Provided by observability's vendor reader or by the software GPU; asked by
systems below it. Every value says where it came from, and an unknown value is
None with a reason: never zero, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class TelemetryDevice:
    """Who a device is. `provenance` names the source, such as `nvml`."""

    device: str
    name: str
    uuid: str | None
    driver: str | None
    pci_address: str | None
    provenance: str


@dataclass(frozen=True, slots=True)
class TelemetrySample:
    """One reading. `reasons` tells, by field name, why a value is None."""

    device: str
    time_ns: int
    provenance: str
    clock_hz: int | None = None
    memory_clock_hz: int | None = None
    power_milliwatts: int | None = None
    temperature_millicelsius: int | None = None
    throttle: frozenset[str] = frozenset()
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MigInstance:
    """One slice of a partitioned GPU."""

    profile: str
    uuid: str
    start: int
    size: int
    memory_bytes: int


class TelemetrySource(Protocol):
    """Whoever can read the devices of this machine."""

    def devices(self) -> Sequence[TelemetryDevice]:
        """The devices that it can read."""
        ...

    def sample(self, device: str) -> TelemetrySample:
        """The newest reading; never calls a driver, never blocks."""
        ...

    def mig_layout(self, device: str) -> Sequence[MigInstance] | None:
        """The slices of a device, or None when it is not partitioned."""
        ...
