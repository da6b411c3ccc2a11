"""Floats: by numpy where its one rounding is the wanted one, else by exact fractions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bedplate.simt import exact, nans
from bedplate.simt.exponential import LIMIT, TERMS
from bedplate.simt.interpreter.base import Lanes, evaluates
from bedplate.simt.module import Instruction

SCALE = np.float32(2.0**64)
"""Brings results at the end of f32 to where their exponents have room."""
_OPERATIONS: dict[str, Callable[..., int]] = {
    "add": exact.add,
    "sub": exact.subtract,
    "mul": exact.multiply,
    "fma": exact.fma,
    "mad": exact.fma,
    "div": exact.divide,
    "sqrt": exact.square_root,
}
_NUMPY: dict[str, Callable[..., Lanes]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "sqrt": np.sqrt,
}


def flushed(made: Instruction, value: Lanes) -> Lanes:
    """With ftz, subnormal values become zeros of their sign."""
    if not made.has("ftz"):
        return value
    tiny = np.float32(2.0**-126)
    return np.where(np.abs(value) < tiny, np.copysign(np.float32(0), value), value)


def _propagated(made: Instruction, value: Lanes, operands: Sequence[Lanes]) -> Lanes:
    """f64's NaN: of the first operand that is one, made quiet; without one the canonical."""
    odd = np.isnan(value)
    bits = np.ascontiguousarray(value).view("u8").copy()
    bits[odd] = nans.CANONICAL[64]
    for name in reversed(nans.PRIORITY.get(made.opcode, "a")):
        operand = operands["abc".index(name)]
        own = odd & np.isnan(operand)
        bits[own] = np.ascontiguousarray(operand).view("u8")[own] | np.uint64(nans.QUIET)
    return bits.view("f8")


def underflowed(result: Lanes, again: Callable[[], Lanes]) -> Lanes:
    """Zero for a result at 2**-126 that is less as `again` makes it, `SCALE` times larger."""
    edge = np.abs(result) == np.float32(2.0**-126)
    if not edge.any():
        return result
    less = edge & (np.abs(again()) < np.float32(2.0**-126) * SCALE)
    return np.where(less, np.copysign(np.float32(0), result), result)


def _scaled(opcode: str, a: Lanes, b: Lanes, *rest: Lanes) -> tuple[Lanes, ...]:
    """Operands of which the result is `SCALE` times larger; exact where underflow is near."""
    if opcode == "div":
        return a * SCALE, b
    first = np.abs(a) < np.abs(b)
    both = np.where(first, a * SCALE, a), np.where(first, b, b * SCALE)
    return (*both, *(value * SCALE for value in rest))


def _finish(made: Instruction, value: Lanes) -> Lanes:
    value = flushed(made, value)
    if made.has("sat"):
        value = np.where(value > 0, value, np.zeros_like(value))
        value = np.where(value < 1, value, np.ones_like(value))
    return value


def _arithmetic(made: Instruction, opcode: str, *operands: Lanes) -> Lanes:
    """One rounding, and what `ftz` does below the normal numbers."""
    values = [flushed(made, operand) for operand in operands]
    result = _rounded(made, opcode, *values)
    if made.has("ftz") and opcode in ("mul", "fma", "mad", "div"):
        return underflowed(result, lambda: _rounded(made, opcode, *_scaled(opcode, *values)))
    return result


def _rounded(made: Instruction, opcode: str, *operands: Lanes) -> Lanes:
    mode = made.slots.get("rnd", "rn")
    if mode == "rn" and opcode in _NUMPY:
        return _NUMPY[opcode](*operands)
    if mode == "rn" and made.type.name == "f32" and opcode in ("fma", "mad"):
        return fused32(*operands)
    form = exact.FORMATS[made.type.name]
    bits = [operand.view(f"u{made.type.bytes}").tolist() for operand in operands]
    rows = zip(*bits, strict=True)
    values = [_OPERATIONS[opcode](*row, form, mode) for row in rows]
    return np.array(values, f"u{made.type.bytes}").view(made.type.dtype)


def fused32(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """`fma.rn.f32` through f64: the product is exact there, and the sum is rounded to odd.

    A sum that is not exact gets an odd last place, which keeps the second rounding, to
    24 bits, from seeing a tie that is none. `exact.fma` is what tests hold this to.

    Source: Boldo, Melquiond, "Emulation of FMA and correctly rounded sums" (2008).
    """
    product = a.astype(np.float64) * b.astype(np.float64)
    addend = c.astype(np.float64)
    total = product + addend
    part = total - product
    error = (product - (total - part)) + (addend - part)
    bits = total.view(np.int64)
    inexact = np.isfinite(error) & (error != 0) & (bits & 1 == 0)
    outward = (error > 0) == (total > 0)
    odd = np.where(inexact, np.where(outward, bits + 1, bits - 1), bits)
    return odd.view(np.float64).astype(np.float32)


@evaluates("floating", "add", "sub", "mul", "fma", "mad", "sqrt")
def arithmetic(made: Instruction, *operands: Lanes) -> Lanes:
    """One rounding."""
    result = _finish(made, _arithmetic(made, made.opcode, *operands))
    return _propagated(made, result, operands) if made.type.name == "f64" else result


@evaluates("floating", "div")
def divide(made: Instruction, a: Lanes, b: Lanes) -> Lanes:
    """Correctly rounded; `approx` has no quotient for divisors above 2**126."""
    if "rnd" in made.slots:
        result = _finish(made, _arithmetic(made, "div", a, b))
        return _propagated(made, result, (a, b)) if made.type.name == "f64" else result
    a, b = flushed(made, a), flushed(made, b)
    quotient = _rounded(made, "div", a, b)
    if made.has("approx"):
        large = (np.abs(b) > np.float32(2.0**126)) & ~np.isinf(b)
        quotient = np.where(large, a * np.copysign(np.float32(0), b), quotient)
    return _finish(made, quotient)


@evaluates("floating", "rcp")
def reciprocal(made: Instruction, a: Lanes) -> Lanes:
    """1 / a."""
    if made.has("approx") and made.type.name == "f64":
        return _gross(a)
    result = _finish(made, _arithmetic(made, "div", np.ones_like(a), a))
    return _propagated(made, result, (a,)) if made.type.name == "f64" else result


def _gross(a: Lanes) -> Lanes:
    """`rcp.approx.ftz.f64`: of the operand's upper word, and an upper word only."""

    def upper(value: Lanes) -> Lanes:
        bits = np.ascontiguousarray(value).view("u8") & np.uint64(0xFFFFFFFF00000000)
        cut = bits.view("f8")
        return np.where(np.abs(cut) < 2.0**-1022, np.copysign(0.0, cut), cut)

    result = upper(1.0 / upper(a))
    return np.where(np.isnan(a), np.float64("nan"), result)


@evaluates("floating", "rsqrt")
def reciprocal_root(made: Instruction, a: Lanes) -> Lanes:
    """1 / sqrt(a), rounded twice."""
    a = flushed(made, a)
    result = _finish(made, np.ones_like(a) / np.sqrt(a))
    return _propagated(made, result, (a,)) if made.type.name == "f64" else result


@evaluates("floating", "ex2")
def power_of_two(made: Instruction, a: Lanes) -> Lanes:
    """Within 2 ulp of 2**a; see `exponential`."""
    a = flushed(made, a)
    x = np.clip(np.where(np.isnan(a), 0, a).astype(np.float64), -LIMIT, LIMIT)
    whole = np.rint(x)
    total = np.full(x.shape, TERMS[-1])
    for term in reversed(TERMS[:-1]):
        total = total * (x - whole) + term
    scale = (whole.astype(np.int64) + 1023 << 52).view(np.float64)
    return _finish(made, np.where(np.isnan(a), a, (total * scale).astype(np.float32)))


@evaluates("floating", "min", "max")
def extreme(made: Instruction, a: Lanes, b: Lanes) -> Lanes:
    """The other operand for a NaN; -0 is below +0."""
    given = a, b
    a, b = flushed(made, a), flushed(made, b)
    below = (a < b) | ((a == b) & np.signbit(a))
    first = below if made.opcode == "min" else ~below
    chosen = np.where(first, a, b)
    chosen = np.where(np.isnan(a), b, chosen)
    result = _finish(made, np.where(np.isnan(b), a, chosen))
    return _propagated(made, result, given) if made.type.name == "f64" else result


@evaluates("floating", "abs")
def absolute(made: Instruction, a: Lanes) -> Lanes:
    """Without its sign; f64's NaN keeps it."""
    result = np.abs(flushed(made, a))
    return _propagated(made, result, (a,)) if made.type.name == "f64" else result


@evaluates("floating", "neg")
def negate(made: Instruction, a: Lanes) -> Lanes:
    """The other sign; f64's NaN keeps its own."""
    result = -flushed(made, a)
    return _propagated(made, result, (a,)) if made.type.name == "f64" else result


@evaluates("floating", "copysign")
def copy_sign(made: Instruction, a: Lanes, b: Lanes) -> Lanes:
    """The sign of a on b; bits, so that payloads stay."""
    return np.copysign(b, a)
