"""Numbers that go to native code: within their limits, or one sentence that says them."""

from __future__ import annotations

from bedplate.runtime.errors import OptionsInvalid

INT32 = (-(1 << 31), (1 << 31) - 1)
UINT32 = (1 << 32) - 1
UINT64 = (1 << 64) - 1


def within(what: str, value: int, least: int, most: int) -> int:
    """`value`. Raises OptionsInvalid for one that is not a whole number from least to most."""
    if type(value) is bool or not isinstance(value, int) or not least <= value <= most:
        raise OptionsInvalid(
            f"{what} is {value!r}", remedy=f"give a whole number from {least:,} to {most:,}"
        )
    return value
