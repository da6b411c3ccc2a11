"""out = a · b + bias + residual over decoded values, [M,K] · [K,N] -> [M,N]."""

from __future__ import annotations

import numpy as np

from bedplate.kernels.formats import Array, Float64Array, decode
from bedplate.kernels.reference.rows import rows_in_use
from bedplate.kernels.tolerance import accumulated, stored


def reference(
    a: Array,
    b: Array,
    bias: Array | None = None,
    residual: Array | None = None,
    count: Array | None = None,
) -> Float64Array:
    """fp64 product of the stored values; [count, N]."""
    rows = rows_in_use("matmul", count, a.shape[0])
    out = decode(a[:rows]) @ decode(b)
    return added(out, bias, residual)


def added(out: Float64Array, bias: Array | None, residual: Array | None) -> Float64Array:
    """`out` plus a row of bias and the first rows of a residual, where given."""
    if bias is not None:
        out = out + decode(bias)
    if residual is not None:
        out = out + decode(residual[: out.shape[0]])
    return out


def bound(
    a: Array,
    b: Array,
    bias: Array | None = None,
    residual: Array | None = None,
    count: Array | None = None,
    *,
    out_format: str = "f32",
) -> Float64Array:
    """fp32 accumulation of K products and two more terms, in any order.

    Holds for f32 and for bf16 inputs: a product of two bf16 is exact in fp32.
    An implementation that rounds f32 activations to bf16 or TF32 breaks it, and
    is meant to.
    """
    rows = rows_in_use("matmul", count, a.shape[0])
    magnitude = np.abs(decode(a[:rows])) @ np.abs(decode(b))
    absolute = added(
        magnitude,
        None if bias is None else np.abs(bias),
        None if residual is None else np.abs(residual),
    )
    error = accumulated(a.shape[1] + 2, absolute)
    return stored(reference(a, b, bias, residual, count), error, out_format)


def cost(m: int, n: int, k: int, weight_bytes: int) -> tuple[int, int]:
    """(bytes moved once, FLOP): f32 activations in and out, weights as stored; 2MNK."""
    return 4 * m * (k + n) + weight_bytes, 2 * m * n * k
