"""out[t] = sum of x[t] over the rows of [T,H]."""

from __future__ import annotations

import numpy as np

from bedplate.kernels.formats import Array, Float64Array, decode
from bedplate.kernels.reference.rows import rows_in_use
from bedplate.kernels.tolerance import accumulated, stored


def reference(x: Array, count: Array | None = None) -> Float64Array:
    """fp64 sums, [count]."""
    result: Float64Array = decode(x[: rows_in_use("reduce", count, x.shape[0])]).sum(axis=-1)
    return result


def bound(x: Array, count: Array | None = None, *, out_format: str = "f32") -> Float64Array:
    """fp32 accumulation in any order over the absolute values."""
    result = reference(x, count)
    magnitude = np.abs(decode(x[: result.shape[0]])).sum(axis=-1)
    return stored(result, accumulated(x.shape[1], magnitude), out_format)


def cost(t: int, h: int) -> tuple[int, int]:
    """(bytes, FLOP): read once."""
    return 4 * t * (h + 1), t * h
