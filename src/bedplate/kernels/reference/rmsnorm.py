"""out = x / sqrt(mean(x^2) + eps) · weight per row of [T,H].

Source: Zhang and Sennrich, "Root mean square layer normalization", 2019, eq. 4.
"""

from __future__ import annotations

import numpy as np

from bedplate.kernels.formats import Array, Float64Array, decode
from bedplate.kernels.reference.rows import rows_in_use
from bedplate.kernels.tolerance import DEVIATIONS, stored


def reference(
    x: Array, weight: Array, count: Array | None = None, *, eps: float = 1e-5
) -> Float64Array:
    """fp64 result, [count, H]. eps is the f32 nearest to the given value."""
    values = decode(x[: rows_in_use("rmsnorm", count, x.shape[0])])
    mean = (values**2).mean(axis=-1, keepdims=True) if x.shape[1] else np.zeros((len(values), 1))
    with np.errstate(invalid="ignore"):
        return values / np.sqrt(mean + float(np.float32(eps))) * decode(weight)


def bound(
    x: Array,
    weight: Array,
    count: Array | None = None,
    *,
    eps: float = 1e-5,
    out_format: str = "f32",
) -> Float64Array:
    """Relative: half the error of the sum of squares (a root halves it), six roundings.

    The sum has only positive terms, so its magnitude is itself.
    """
    result = reference(x, weight, count, eps=eps)
    u = 2.0**-24
    relative = 0.5 * DEVIATIONS * np.sqrt(x.shape[1] + 1.0) * u + 6 * u
    with np.errstate(invalid="ignore"):
        return stored(result, np.abs(result) * relative, out_format)


def cost(t: int, h: int) -> tuple[int, int]:
    """(bytes, FLOP) for f32 in and out."""
    return 8 * t * h + 4 * h, 4 * t * h
