"""The exact arithmetic is IEEE's: held to numpy where that rounds, to itself where not."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bedplate.simt import exact
from bedplate.simt.interpreter.floating import fused32

SINGLE = st.integers(0, (1 << 32) - 1)
DOUBLE = st.integers(0, (1 << 64) - 1)
MODES = ("rn", "rz", "rm", "rp")


def single(bits: int) -> np.float32:
    """The f32 of bits."""
    return np.array(bits, np.uint32).view(np.float32)[()]


def double(bits: int) -> float:
    """The f64 of bits."""
    return float(np.array(bits, np.uint64).view(np.float64)[()])


def same32(bits: int, value: np.float32) -> bool:
    """Whether bits are an f32, any NaN being the canonical one."""
    if np.isnan(value):
        return bits == exact.BINARY32.canonical
    return bits == int(np.array(value, np.float32).view(np.uint32))


@given(SINGLE, SINGLE)
def test_nearest_is_the_hosts(a: int, b: int) -> None:
    """Four operations in f32 against numpy."""
    form = exact.BINARY32
    with np.errstate(all="ignore"):
        assert same32(exact.add(a, b, form), single(a) + single(b))
        assert same32(exact.multiply(a, b, form), single(a) * single(b))
        assert same32(exact.divide(a, b, form), single(a) / single(b))
        assert same32(exact.square_root(a, form), np.sqrt(single(a)))


@given(SINGLE, SINGLE, SINGLE)
def test_the_quick_fma_is_the_exact_one(a: int, b: int, c: int) -> None:
    """The reference's way through f64 never rounds twice."""
    with np.errstate(all="ignore"):
        quick = fused32(*(np.array([bits], np.uint32).view(np.float32) for bits in (a, b, c)))[0]
    assert same32(exact.fma(a, b, c, exact.BINARY32), quick)


@given(SINGLE, SINGLE, st.integers(-3, 3), st.booleans())
def test_the_quick_fma_near_ties(a: int, b: int, off: int, negative: bool) -> None:
    """Addends next to the product, where all but the last bits cancel."""
    product = exact.multiply(a, b, exact.BINARY32)
    c = (product + off) % (1 << 31) | (1 << 31 if negative else 0)
    with np.errstate(all="ignore"):
        quick = fused32(*(np.array([bits], np.uint32).view(np.float32) for bits in (a, b, c)))[0]
    assert same32(exact.fma(a, b, c, exact.BINARY32), quick)


def test_the_case_that_two_roundings_get_wrong() -> None:
    """Directed: the product is a tie in f32 that 2**-60 breaks."""
    small = int(np.array(2.0**-60, np.float32).view(np.uint32))
    assert exact.fma(0x3F800800, 0x3F800800, small, exact.BINARY32) == 0x3F801001


@given(DOUBLE, DOUBLE)
def test_directed_modes_enclose_the_exact_sum(a: int, b: int) -> None:
    """rm <= exact <= rp, rz is the one nearer to zero, and rn is one of both."""
    if not (math.isfinite(double(a)) and math.isfinite(double(b))):
        return
    results = {mode: exact.add(a, b, exact.BINARY64, mode) for mode in MODES}
    values = {mode: double(bits) for mode, bits in results.items()}
    true = Fraction(double(a)) + Fraction(double(b))
    assert values["rm"] == -math.inf or Fraction(values["rm"]) <= true
    assert values["rp"] == math.inf or Fraction(values["rp"]) >= true
    assert values["rz"] in (values["rm"], values["rp"])
    assert values["rn"] in (values["rm"], values["rp"])
    if math.isfinite(values["rm"]) and values["rm"] != true:
        assert math.nextafter(values["rm"], math.inf) == values["rp"]


@given(DOUBLE)
def test_decoding_and_encoding_are_inverse(bits: int) -> None:
    """Every finite f64 comes back, in every mode."""
    number = exact.decode(bits, exact.BINARY64)
    if isinstance(number.value, Fraction):
        for mode in MODES:
            assert exact.encode(number.negative, number.value, exact.BINARY64, mode) == bits
