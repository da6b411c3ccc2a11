"""Conversions, each through the exact value of its operand."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor, trunc

import numpy as np

from bedplate.simt import exact, nans
from bedplate.simt.interpreter.base import Lanes, each, evaluates
from bedplate.simt.interpreter.floating import SCALE, flushed, underflowed
from bedplate.simt.module import Instruction, Register
from bedplate.simt.scalar import Scalar

_ROUNDED: dict[str, Callable[[Lanes], Lanes]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}
_WHOLE: dict[str, Callable[[Fraction], int]] = {
    "rni": round,
    "rzi": trunc,
    "rmi": floor,
    "rpi": ceil,
}
"""Python and numpy round halves to even, as `rni` does."""


@evaluates("conversion", "cvt")
def convert(made: Instruction, a: Lanes, *second: Lanes) -> Lanes:
    """By the kinds of both types, then up to the register's width."""
    if second:
        return _pair(made, a, second[0])
    to, source = made.types["T"], made.types["U"]
    if made.has("ftz") and source.name == "f32":
        a = flushed(made, a)
    if to.kind == "float":
        return _to_float(made, a)
    if source.kind == "float":
        value = _whole(made, a)
    elif made.has("sat"):
        low, high = _ends(to)
        held = np.iinfo(a.dtype)
        value = np.clip(a, max(low, held.min), min(high, held.max)).astype(to.dtype)
    else:
        value = a.astype(to.dtype)
    output = made.operands["d"]
    if isinstance(output, Register) and output.type.bits > to.bits:
        return value.astype(f"{'i' if to.signed else 'u'}{output.type.bytes}")
    return value


def _pair(made: Instruction, a: Lanes, b: Lanes) -> Lanes:
    """Two floats as halves of a word, the first in the upper one."""
    form = exact.FORMATS[made.slots["pair"].removesuffix("x2")]

    def half(bits: int) -> int:
        number = exact.decode(bits, exact.BINARY32)
        if number.nan:
            return form.canonical
        if number.infinite:
            return form.infinity | int(number.negative) << 15
        return exact.encode(number.negative, abs(number.fraction), form, "rn")

    return each(lambda x, y: half(x) << 16 | half(y), "u4", a.view("u4"), b.view("u4"))


def _ends(to: Scalar) -> tuple[int, int]:
    """The least and the largest number of an integer type."""
    low = -(1 << (to.bits - 1)) if to.signed else 0
    return low, (1 << (to.bits - int(to.signed))) - 1


def _whole(made: Instruction, a: Lanes) -> Lanes:
    """Floats, which f64 holds all, as whole numbers of the destination's range."""
    to = made.types["T"]
    low, high = _ends(to)
    rounded = _ROUNDED[made.slots["irnd"]](a.astype(np.float64))
    # the largest of 64 bits is no f64, and the next one above is out of range
    inside = (rounded >= low) & (rounded < float(high))
    value = np.where(inside, rounded, 0).astype(to.dtype)
    value[rounded < low], value[rounded >= float(high)] = low, high
    nan = np.array(nans.of_conversion(made), f"u{to.bytes}").view(to.dtype)
    value[np.isnan(rounded)] = nan
    return value


def _to_float(made: Instruction, a: Lanes) -> Lanes:
    to, source = made.types["T"], made.types["U"]
    form, mode = exact.FORMATS[to.name], made.slots.get("rnd", "rn")

    def one(value: int, scale: int = 1) -> int:
        if source.kind != "float":
            return exact.encode(value < 0, Fraction(abs(value)), form, mode)
        number = exact.decode(value, exact.FORMATS[source.name])
        if number.nan:
            return _nan(made, value)
        if number.infinite:
            return form.infinity | int(number.negative) << (form.bits - 1)
        size = abs(number.fraction) * scale
        if "irnd" in made.slots:
            size = abs(Fraction(_WHOLE[made.slots["irnd"]](number.fraction)))
        return exact.encode(number.negative, size, form, mode)

    operand = a.view(f"u{source.bytes}") if source.kind == "float" else a
    result = each(one, f"u{to.bytes}", operand).view(to.dtype)
    if made.has("ftz") and source.name == "f64":
        result = underflowed(
            result,
            lambda: each(lambda x: one(x, int(SCALE)), "u4", operand).view("f4"),
        )
    if to.name == "f32":
        result = flushed(made, result)
    if made.has("sat"):
        result = np.where(result > 0, result, np.zeros_like(result))
        result = np.where(result < 1, result, np.ones_like(result))
    return result


def _nan(made: Instruction, bits: int) -> int:
    """The canonical NaN, or the payload as far as it fits, made quiet where it is computed."""
    to, source = exact.FORMATS[made.types["T"].name], exact.FORMATS[made.types["U"].name]
    if made.form.arithmetic:
        return to.canonical
    if made.has("ftz") and source is exact.BINARY32:
        bits = source.canonical
    payload = bits & ((1 << (source.precision - 1)) - 1)
    room = to.precision - source.precision
    payload = payload << room if room > 0 else payload >> -room
    if "irnd" in made.slots or (to is not source and source is not exact.BFLOAT16):
        payload |= 1 << (to.precision - 2)
    return bits >> (source.bits - 1) << (to.bits - 1) | to.infinity | payload
