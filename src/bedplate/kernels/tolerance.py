"""How far an implementation may lie from the fp64 reference, and the verdict.

Bounds are elementwise: |err| <= c·sqrt(K)·u·(|A||B|), derived per op in
`reference/<op>.py`, never tuned until a test passes. The sqrt(K) comes from
treating rounding errors as independent and of mean zero; the constant c is the
deviation `DEVIATIONS`, so one element exceeds a bound by chance with
probability below 2·exp(-c²/2) = 5e-11.
Source: Higham and Mary, "A new approach to probabilistic rounding error
analysis", SIAM J. Sci. Comput. 41(5), 2019, theorem 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bedplate.kernels.errors import DtypeError
from bedplate.kernels.formats import Float64Array

DEVIATIONS = 7.0
"""c of the probabilistic bound (lambda in the source)."""

UNIT_ROUNDOFF = {"f32": 2.0**-24, "bf16": 2.0**-8}
"""Half the spacing at 1: 24 and 8 significand bits, round to nearest."""

SMALLEST_NORMAL = 2.0**-126
"""Of f32 and bf16. A unit may flush smaller values to zero (VDPBF16PS always does)."""


def unit_roundoff(format_name: str) -> float:
    """Unit roundoff of an output format; raises `DtypeError` for an integer format."""
    try:
        return UNIT_ROUNDOFF[format_name]
    except KeyError:
        raise DtypeError(f"no unit roundoff for {format_name}; outputs are f32 or bf16") from None


def accumulated(terms: int, magnitude: Float64Array, roundoff: float = 2.0**-24) -> Float64Array:
    """Error of a sum of `terms` products whose absolute values sum to `magnitude`.

    One rounding per product and one per addition in any order, so the count is
    terms + 1; flushed products add `terms` times the smallest normal number.
    """
    growth = DEVIATIONS * float(np.sqrt(terms + 1.0)) * roundoff
    return growth * magnitude + terms * SMALLEST_NORMAL


def stored(result: Float64Array, error: Float64Array, format_name: str) -> Float64Array:
    """`error` plus the rounding of the result, error included, into its format."""
    u = unit_roundoff(format_name)
    rounding = 0.0 if format_name == "f32" else u
    return error + rounding * (np.abs(result) + error) + SMALLEST_NORMAL


@dataclass(frozen=True)
class Comparison:
    """Outcome of one comparison; `worst_ratio` is the largest |err| / bound."""

    accepted: bool
    worst_ratio: float
    message: str


def compare(actual: Float64Array, expected: Float64Array, bound: Float64Array) -> Comparison:
    """Accept when every element lies within its bound and NaN and Inf sit alike.

    A zero bound demands equality. Shapes must match. O(elements).
    """
    if actual.shape != expected.shape:
        return Comparison(False, np.inf, f"shape {actual.shape}, expected {expected.shape}")
    if expected.size == 0:
        return Comparison(True, 0.0, "empty")
    special = ~np.isfinite(expected)
    alike = np.where(np.isnan(expected), np.isnan(actual), actual == expected)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.abs(actual - expected)
        ratio = np.where(error == 0, 0.0, error / np.broadcast_to(bound, error.shape))
    ratio = np.where(special, np.where(alike, 0.0, np.inf), ratio)
    ratio = np.where(np.isnan(ratio), np.inf, ratio)
    worst = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    where = tuple(int(i) for i in worst)
    text = (
        f"worst at {where}: got {actual[worst]:.9g}, expected {expected[worst]:.9g},"
        f" |err|/bound {ratio[worst]:.3g}"
    )
    return Comparison(bool(ratio[worst] <= 1.0), float(ratio[worst]), text)
