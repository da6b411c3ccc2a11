"""out = x in the other float format, f32 to bf16 or back."""

from __future__ import annotations

import numpy as np

from bedplate.kernels.formats import Array, Float64Array, bf16_from_f32, decode, f32_from_bf16
from bedplate.kernels.reference.rows import rows_in_use


def reference(x: Array, count: Array | None = None) -> Array:
    """[count, H]: uint16 (bf16) from float32, float32 from uint16."""
    values = x[: rows_in_use("convert", count, x.shape[0])]
    return f32_from_bf16(values) if values.dtype == np.uint16 else bf16_from_f32(values)


def bound(x: Array, count: Array | None = None, *, out_format: str = "bf16") -> Float64Array:
    """Zero: widening is exact and rounding to nearest even is unique."""
    del out_format
    return np.zeros_like(decode(reference(x, count)))


def cost(t: int, h: int) -> tuple[int, int]:
    """(bytes, FLOP): 4 bytes on one side, 2 on the other."""
    return 6 * t * h, 0
