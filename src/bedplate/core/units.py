"""Bytes and durations between text and integers.

Inside the code a quantity is an integer whose name carries its unit
(`size_bytes`, `timeout_ns`); this module is the border to what people write
and read. Decimal and binary prefixes are kept apart: `kB` is 1000, `KiB` 1024.
"""

from __future__ import annotations

import re
from decimal import Decimal

from bedplate.core.errors import UsageError

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

_BYTES = {
    "": 1,
    "b": 1,
    **{f"{prefix}b": 1000**power for power, prefix in enumerate("kmgtp", start=1)},
    **{f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgtp", start=1)},
}
_NANOSECONDS = {
    "ns": 1,
    "us": NS_PER_US,
    "ms": NS_PER_MS,
    "s": NS_PER_S,
    "m": 60 * NS_PER_S,
    "min": 60 * NS_PER_S,
    "h": 3600 * NS_PER_S,
    "d": 86400 * NS_PER_S,
}
_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")


def parse_bytes(text: str) -> int:
    """Bytes of `4096`, `4 KiB` or `1.5GB`.

    Raises `UsageError` for an unknown unit, a negative number or a fraction
    of a byte.
    """
    return _parse(text, _BYTES, "a size such as 512MiB")


def parse_duration_ns(text: str) -> int:
    """Nanoseconds of `250ms`, `1.5 s`, `2h` or `30d`; a unit is required.

    Raises `UsageError` as `parse_bytes` does.
    """
    return _parse(text, _NANOSECONDS, "a duration such as 30s")


def format_bytes(size_bytes: int) -> str:
    """A size for people, in the largest binary unit that leaves 1 or more."""
    unit, scale = "B", 1
    for power, prefix in enumerate("KMGTP", start=1):
        if abs(size_bytes) >= 1024**power:
            unit, scale = f"{prefix}iB", 1024**power
    return f"{size_bytes} B" if scale == 1 else f"{size_bytes / scale:.1f} {unit}"


def format_quantity(value: float, unit: str) -> str:
    """A measured value for people, four significant digits and a decimal prefix.

    `ns` becomes `us`, `ms` or `s`; `bytes/s` and `1/s` become `GB/s` and `M/s` and the
    like. Any other unit stays as it is.
    """
    steps = {
        "ns": ("ns", "us", "ms", "s"),
        "1/s": ("1/s", "k/s", "M/s", "G/s"),
        "bytes/s": ("B/s", "kB/s", "MB/s", "GB/s", "TB/s"),
    }.get(unit, (unit,))
    power = 0
    # 999.95 would be shown as 1000 of the smaller one.
    while power + 1 < len(steps) and abs(value) >= 999.95 * 1000**power:
        power += 1
    return f"{value / 1000**power:.4g} {steps[power]}"


def format_duration_ns(duration_ns: int) -> str:
    """A duration for people, with three significant digits below a minute."""
    magnitude = abs(duration_ns)
    if magnitude >= 60 * NS_PER_S:
        seconds = round(magnitude / NS_PER_S)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        text = f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"
        return text if duration_ns >= 0 else f"-{text}"
    for unit, scale in (("s", NS_PER_S), ("ms", NS_PER_MS), ("us", NS_PER_US)):
        if magnitude >= scale:
            return f"{duration_ns / scale:.3g} {unit}"
    return f"{duration_ns} ns"


def _parse(text: str, units: dict[str, int], expected: str) -> int:
    match = _NUMBER.fullmatch(text)
    scale = units.get(match[2].lower()) if match else None
    value = Decimal(match[1]) * scale if match and scale else None
    if value is None or value != int(value):
        raise UsageError(
            f"{text!r} is not {expected}",
            code="core.unit",
            remedy=f"use a whole number of one of {', '.join(u for u in units if u)}",
        )
    return int(value)
