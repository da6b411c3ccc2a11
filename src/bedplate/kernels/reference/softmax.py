"""Softmax of scale · x over the rows of [T,H]."""

from __future__ import annotations

import numpy as np

from bedplate.kernels.formats import Array, Float64Array, decode
from bedplate.kernels.reference.rows import rows_in_use
from bedplate.kernels.tolerance import DEVIATIONS, stored


def reference(x: Array, count: Array | None = None, *, scale: float = 1.0) -> Float64Array:
    """fp64 result, [count, H]. A row with a NaN, or without a finite maximum, is NaN."""
    values = decode(x[: rows_in_use("softmax", count, x.shape[0])])
    with np.errstate(invalid="ignore"):
        shifted = values - values.max(axis=-1, keepdims=True, initial=-np.inf)
        weights = np.exp(float(np.float32(scale)) * shifted)
        result: Float64Array = weights / weights.sum(axis=-1, keepdims=True)
    return result


def bound(
    x: Array, count: Array | None = None, *, scale: float = 1.0, out_format: str = "f32"
) -> Float64Array:
    """Relative: exponent 2u of its size, exponential 4u, quotient 2u, sum c·sqrt(H+1)·u.

    Relative to the weight itself, so a flat row of many columns has no room for zeros.
    """
    result = reference(x, count, scale=scale)
    values = decode(x[: result.shape[0]])
    u = 2.0**-24
    with np.errstate(invalid="ignore"):
        distance = scale * (values.max(axis=-1, keepdims=True, initial=-np.inf) - values)
        relative = 2 * u * distance + 6 * u + DEVIATIONS * np.sqrt(x.shape[1] + 1.0) * u
        return stored(result, np.where(result == 0, 0.0, result * relative), out_format)


def cost(t: int, h: int) -> tuple[int, int]:
    """(bytes, FLOP) for f32 in and out, the exponential counted as one."""
    return 8 * t * h, 4 * t * h
