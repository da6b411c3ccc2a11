"""out = a · w^T + bias + residual with w [N,K] in GGUF blocks of 32.

The reference multiplies the exact decoded weights with the exact activations,
in both precision classes; the int8 class pays for its rounding in the bound.
"""

from __future__ import annotations

import numpy as np

from bedplate.kernels.formats import BLOCK_ELEMENTS, Array, BlockArray, Float64Array, decode
from bedplate.kernels.reference.matmul import added, cost
from bedplate.kernels.reference.rows import rows_in_use
from bedplate.kernels.tolerance import DEVIATIONS, accumulated, stored
from bedplate.kernels.vocabulary import INT8_BLOCKS, KEEP_FLOAT

__all__ = ["bound", "cost", "reference"]


def reference(
    a: Array,
    w: BlockArray,
    bias: Array | None = None,
    residual: Array | None = None,
    count: Array | None = None,
    *,
    activation: int = KEEP_FLOAT,
) -> Float64Array:
    """fp64 product of the stored values; [count, N]. `activation` does not change it."""
    del activation
    rows = rows_in_use("quantized_matmul", count, a.shape[0])
    return added(decode(a[:rows]) @ decode(w).T, bias, residual)


def bound(
    a: Array,
    w: BlockArray,
    bias: Array | None = None,
    residual: Array | None = None,
    count: Array | None = None,
    *,
    activation: int = KEEP_FLOAT,
    out_format: str = "f32",
) -> Float64Array:
    """fp32 accumulation, plus the rounding of int8 activations in that class.

    fp32: an implementation may factor the scale and the minimum of a block out
    of its sum, so magnitudes are those of code·scale and offset·scale apart:
    |q|·|d| + |zero or minimum|, at most three roundings more per product.

    int8: x is stored as q·d with d = amax/127 of its block of 32, so each error
    is at most d/2 (and 2^-9 of amax for a scale rounded to f32 or lower is not
    allowed: d stays f32). Errors of one dot product are bounded, independent
    and of mean zero: Hoeffding gives c·sqrt(sum (d/2)^2 w^2).
    """
    rows = rows_in_use("quantized_matmul", count, a.shape[0])
    x = decode(a[:rows])
    absolute = added(
        np.abs(x) @ _block_magnitude(w).T,
        None if bias is None else np.abs(bias),
        None if residual is None else np.abs(residual),
    )
    error = accumulated(a.shape[1] + 4, absolute)
    if activation == INT8_BLOCKS:
        blocks = x.reshape(rows, x.shape[1] // BLOCK_ELEMENTS, BLOCK_ELEMENTS)
        half_step = np.abs(blocks).max(axis=-1, initial=0.0) / 254
        energy = (decode(w) ** 2).reshape(w.shape[0], -1, BLOCK_ELEMENTS).sum(axis=-1)
        error = error + DEVIATIONS * np.sqrt(half_step**2 @ energy.T)
    return stored(reference(a, w, bias, residual, count), error, out_format)


def _block_magnitude(w: BlockArray) -> Float64Array:
    """|code·scale| + |offset| per element: what a factored sum adds up."""
    values = decode(w)
    shape = (w.shape[0], w.shape[1] // BLOCK_ELEMENTS, w.format.block_bytes)
    blocks = w.data.reshape(shape)
    scale = np.abs(blocks[..., 0:2].copy().view(np.float16).astype(np.float64))
    if w.format.has_minimum:
        offset = np.abs(blocks[..., 2:4].copy().view(np.float16).astype(np.float64))
    elif w.format.bits == 8:
        offset = 128 * scale
    else:
        offset = w.format.zero_point * scale
    grouped = np.abs(values).reshape(*shape[:2], BLOCK_ELEMENTS)
    magnitude: Float64Array = (grouped + 2 * offset).reshape(w.shape)
    return magnitude
