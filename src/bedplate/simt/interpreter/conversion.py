"""Conversions, each through the exact value of its operand."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor, trunc

import numpy as np

from bedplate.simt import exact
from bedplate.simt.interpreter.base import Lanes, each, evaluates
from bedplate.simt.interpreter.floating import flushed
from bedplate.simt.module import Instruction, Register
from bedplate.simt.scalar import Scalar

_WHOLE: dict[str, Callable[[Fraction], int]] = {
    "rni": round,
    "rzi": trunc,
    "rmi": floor,
    "rpi": ceil,
}
"""Python rounds halves to even, as `rni` does."""


@evaluates("conversion", "cvt")
def convert(made: Instruction, a: Lanes) -> Lanes:
    """By the kinds of both types, then up to the register's width."""
    to, source = made.types["T"], made.types["U"]
    if made.has("ftz") and source.name == "f32":
        a = flushed(made, a)
    if to.kind == "float":
        return _to_float(made, a)
    if source.kind == "float":
        bits = a.view(f"u{source.bytes}")
        value = each(lambda x: _whole(made, x), to.dtype, bits)
    elif made.has("sat"):
        value = each(lambda x: _clamped(x, to), to.dtype, a)
    else:
        value = each(lambda x: x, to.dtype, a)
    output = made.operands["d"]
    if isinstance(output, Register) and output.type.bits > to.bits:
        return value.astype(f"{'i' if to.signed else 'u'}{output.type.bytes}")
    return value


def _clamped(value: int, to: Scalar) -> int:
    low = -(1 << (to.bits - 1)) if to.signed else 0
    return min(max(value, low), (1 << (to.bits - int(to.signed))) - 1)


def _whole(made: Instruction, bits: int) -> int:
    """A float as a whole number of the destination's range; a NaN is 0."""
    number = exact.decode(bits, exact.FORMATS[made.types["U"].name])
    if number.nan:
        return 0
    if number.infinite:
        return _clamped(-(1 << 200) if number.negative else 1 << 200, made.types["T"])
    return _clamped(_WHOLE[made.slots["irnd"]](number.fraction), made.types["T"])


def _to_float(made: Instruction, a: Lanes) -> Lanes:
    to, source = made.types["T"], made.types["U"]
    form, mode = exact.FORMATS[to.name], made.slots.get("rnd", "rn")

    def one(value: int) -> int:
        if source.kind != "float":
            return exact.encode(value < 0, Fraction(abs(value)), form, mode)
        number = exact.decode(value, exact.FORMATS[source.name])
        if number.nan:
            return form.canonical
        if number.infinite:
            return form.infinity | int(number.negative) << (form.bits - 1)
        size = abs(number.fraction)
        if "irnd" in made.slots:
            size = abs(Fraction(_WHOLE[made.slots["irnd"]](number.fraction)))
        return exact.encode(number.negative, size, form, mode)

    operand = a.view(f"u{source.bytes}") if source.kind == "float" else a
    result = each(one, f"u{to.bytes}", operand).view(to.dtype)
    if to.name == "f32":
        result = flushed(made, result)
    if made.has("sat"):
        result = np.where(result > 0, result, np.zeros_like(result))
        result = np.where(result < 1, result, np.ones_like(result))
    return result
