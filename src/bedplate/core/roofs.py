"""Measured roofs: how fast this machine can be at one thing.

Provided by roofline, asked by the kernel review gate. A roof is a measurement
of this machine; a vendor's figure is never one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Roof:
    """Order statistics of one roof, in `unit` (such as `bytes/s`, `flop/s`)."""

    device: str
    quantity: str
    dtype: str
    level: str
    p5: float
    p50: float
    p95: float
    unit: str
    clock_hz: int | None
    origin: str


class RoofSource(Protocol):
    """Whoever measured the roofs."""

    def roof(self, device: str, quantity: str, dtype: str, level: str) -> Roof | None:
        """The roof, or None when it was not measured here.

        `quantity` is such as `bandwidth`, `level` such as `l2` or `dram`.
        """
        ...
