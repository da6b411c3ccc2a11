"""Floating point by exact rational arithmetic: the specification that others are held to.

A number is the bits of a binary format. Each operation computes the exact result as a
fraction and rounds once, in any of the four modes; special values follow IEEE 754, and a
NaN is always the canonical one. Slow (some microseconds a call) and short on purpose.

Source: IEEE 754-2019, sections 4.3, 6.1, 6.3, 7; PTX ISA, "Floating Point Instructions".
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

INFINITY = "infinity"
NAN = "nan"


@dataclass(frozen=True, slots=True)
class Format:
    """A binary format: `precision` counts the hidden bit."""

    bits: int
    precision: int
    canonical: int

    @property
    def exponent_bits(self) -> int:
        """Width of the exponent field."""
        return self.bits - self.precision

    @property
    def bias(self) -> int:
        """Of the exponent field."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def infinity(self) -> int:
        """Its bits, positive."""
        return ((1 << self.exponent_bits) - 1) << (self.precision - 1)

    @property
    def lowest(self) -> int:
        """Exponent of the last place of subnormal numbers."""
        return 2 - self.bias - self.precision


BINARY16 = Format(16, 11, 0x7FFF)
BINARY32 = Format(32, 24, 0x7FFFFFFF)
BINARY64 = Format(64, 53, 0xFFF8000000000000)
BFLOAT16 = Format(16, 8, 0x7FFF)
FORMATS = {"f16": BINARY16, "f32": BINARY32, "f64": BINARY64, "bf16": BFLOAT16}


@dataclass(frozen=True, slots=True)
class Number:
    """A decoded value: `value` is a fraction, INFINITY or NAN; the sign counts for zeros."""

    negative: bool
    value: Fraction | str

    @property
    def nan(self) -> bool:
        """Not a number."""
        return self.value == NAN

    @property
    def infinite(self) -> bool:
        """Either infinity."""
        return self.value == INFINITY

    @property
    def zero(self) -> bool:
        """Either zero."""
        return self.value == 0

    @property
    def fraction(self) -> Fraction:
        """The value of a finite number, with its sign."""
        assert isinstance(self.value, Fraction)
        return -self.value if self.negative else self.value


def decode(bits: int, form: Format) -> Number:
    """The number that bits stand for."""
    negative = bool(bits >> (form.bits - 1))
    stored = form.precision - 1
    exponent = bits >> stored & ((1 << form.exponent_bits) - 1)
    mantissa = bits & ((1 << stored) - 1)
    if exponent == (1 << form.exponent_bits) - 1:
        return Number(negative, NAN if mantissa else INFINITY)
    if exponent:
        mantissa |= 1 << stored
    place = max(exponent, 1) - form.bias - stored
    return Number(negative, Fraction(mantissa) * Fraction(2) ** place)


def encode(negative: bool, size: Fraction, form: Format, mode: str) -> int:
    """The bits of a number of that sign and size, rounded in `mode`."""
    sign = int(negative) << (form.bits - 1)
    if not size:
        return sign
    place = max(_exponent(size) - form.precision + 1, form.lowest)
    scaled = size / Fraction(2) ** place
    mantissa = _rounded(scaled, negative, mode)
    # A carry out of the mantissa is the next exponent: the fields add up.
    exponent = place - form.lowest
    bits = mantissa + (exponent << (form.precision - 1))
    if bits >= form.infinity:
        toward_zero = mode == "rz" or (mode == "rm" and not negative) or (mode == "rp" and negative)
        bits = form.infinity - int(toward_zero)
    return sign | bits


def _exponent(size: Fraction) -> int:
    """The power of two at or below a positive fraction."""
    guess = size.numerator.bit_length() - size.denominator.bit_length()
    return guess if Fraction(2) ** guess <= size else guess - 1


def _rounded(scaled: Fraction, negative: bool, mode: str) -> int:
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    if not rest:
        return whole
    if mode == "rn":
        half = Fraction(1, 2)
        return whole + int(rest > half or (rest == half and whole & 1))
    return whole + int((mode == "rp" and not negative) or (mode == "rm" and negative))


def _finish(value: Fraction, zero_negative: bool, form: Format, mode: str) -> int:
    if not value:
        return encode(zero_negative, Fraction(0), form, mode)
    return encode(value < 0, abs(value), form, mode)


def _infinity(negative: bool, form: Format) -> int:
    return form.infinity | int(negative) << (form.bits - 1)


def fma(a: int, b: int, c: int, form: Format, mode: str = "rn") -> int:
    """a * b + c, rounded once."""
    x, y, z = (decode(bits, form) for bits in (a, b, c))
    if x.nan or y.nan or z.nan or (x.infinite and y.zero) or (x.zero and y.infinite):
        return form.canonical
    negative = x.negative != y.negative
    if x.infinite or y.infinite:
        opposite = z.infinite and z.negative != negative
        return form.canonical if opposite else _infinity(negative, form)
    if z.infinite:
        return _infinity(z.negative, form)
    product = x.fraction * y.fraction
    return _finish(product + z.fraction, _zero(product, negative, z, mode), form, mode)


def _zero(product: Fraction, negative: bool, z: Number, mode: str) -> bool:
    """The sign of an exact zero sum."""
    if not product and z.zero and negative == z.negative:
        return negative
    return mode == "rm"


def add(a: int, b: int, form: Format, mode: str = "rn") -> int:
    """a + b."""
    x, y = decode(a, form), decode(b, form)
    if x.nan or y.nan or (x.infinite and y.infinite and x.negative != y.negative):
        return form.canonical
    if x.infinite or y.infinite:
        return _infinity(x.negative if x.infinite else y.negative, form)
    total = x.fraction + y.fraction
    same = x.zero and y.zero and x.negative == y.negative
    return _finish(total, x.negative if same else mode == "rm", form, mode)


def subtract(a: int, b: int, form: Format, mode: str = "rn") -> int:
    """a - b."""
    return add(a, b ^ 1 << (form.bits - 1), form, mode)


def multiply(a: int, b: int, form: Format, mode: str = "rn") -> int:
    """a * b."""
    x, y = decode(a, form), decode(b, form)
    if x.nan or y.nan or (x.infinite and y.zero) or (x.zero and y.infinite):
        return form.canonical
    negative = x.negative != y.negative
    if x.infinite or y.infinite:
        return _infinity(negative, form)
    return _finish(x.fraction * y.fraction, negative, form, mode)


def divide(a: int, b: int, form: Format, mode: str = "rn") -> int:
    """a / b."""
    x, y = decode(a, form), decode(b, form)
    if x.nan or y.nan or (x.infinite and y.infinite) or (x.zero and y.zero):
        return form.canonical
    negative = x.negative != y.negative
    if x.infinite or y.zero:
        return _infinity(negative, form)
    if y.infinite:
        return encode(negative, Fraction(0), form, mode)
    return _finish(x.fraction / y.fraction, negative, form, mode)


def square_root(a: int, form: Format, mode: str = "rn") -> int:
    """The root of a; rounded from enough bits and whether the rest is zero."""
    x = decode(a, form)
    if x.nan or (x.negative and not x.zero):
        return form.canonical
    if x.zero or x.infinite:
        return a
    size = x.fraction
    # Scaled by an even power of two, the root has some bits more than the format.
    power = 2 * (form.precision + 2) - _exponent(size)
    power += power & 1
    scaled = size * Fraction(2) ** power
    whole = scaled.numerator // scaled.denominator
    root = isqrt(whole)
    inexact = root * root != whole or whole != scaled
    exact = Fraction(2 * root + int(inexact), 2) / Fraction(2) ** (power // 2)
    return encode(False, exact, form, mode)
