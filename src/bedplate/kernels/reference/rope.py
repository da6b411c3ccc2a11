"""Rotary position embedding of x [T,Heads,D] in place, one position per token.

A pair (p, q) turns by angle position · inverse_frequency[i] and is multiplied
by `scale` (the attention factor of YaRN; 1 without it).
Source: Su et al., "RoFormer", 2021, eq. 34.
"""

from __future__ import annotations

import numpy as np

from bedplate.kernels.formats import Array, Float64Array, decode
from bedplate.kernels.reference.rows import rows_in_use
from bedplate.kernels.vocabulary import HALF_SPLIT


def reference(
    x: Array,
    positions: Array,
    inverse_frequency: Array,
    count: Array | None = None,
    *,
    pairing: int = HALF_SPLIT,
    scale: float = 1.0,
) -> Float64Array:
    """The whole of x, the first `count` tokens turned. Angles are exact in fp64."""
    rows = rows_in_use("rope", count, x.shape[0])
    out = decode(x)
    angle = decode(positions[:rows])[:, None, None] * decode(inverse_frequency)
    cosine, sine = np.cos(angle) * np.float32(scale), np.sin(angle) * np.float32(scale)
    first, second = _halves(out[:rows], pairing)
    turned = first * cosine - second * sine, second * cosine + first * sine
    first[...], second[...] = turned
    return out


def _halves(x: Float64Array, pairing: int) -> tuple[Float64Array, Float64Array]:
    half = x.shape[-1] // 2
    if pairing == HALF_SPLIT:
        return x[..., :half], x[..., half:]
    return x[..., 0::2], x[..., 1::2]


def bound(
    x: Array,
    positions: Array,
    inverse_frequency: Array,
    count: Array | None = None,
    *,
    pairing: int = HALF_SPLIT,
    scale: float = 1.0,
    out_format: str = "f32",
) -> Float64Array:
    """|p| + |q| times 8 unit roundoffs: sine and cosine to 2 ulp, two products, a sum.

    The angle must be reduced in more than fp32: at position 8,192 an fp32 angle
    alone errs by 2^-11, which this refuses. Rows past `count` must not change.
    """
    del positions, inverse_frequency, out_format
    rows = rows_in_use("rope", count, x.shape[0])
    out = np.zeros(x.shape)
    first, second = _halves(np.abs(decode(x[:rows])), pairing)
    low, high = _halves(out[:rows], pairing)
    low[...] = high[...] = (first + second) * scale * 8 * 2.0**-24 + 2.0**-126
    return out


def cost(t: int, heads: int, d: int) -> tuple[int, int]:
    """(bytes, FLOP): x read and written."""
    return 8 * t * heads * d, 3 * t * heads * d
