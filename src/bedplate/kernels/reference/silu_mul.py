"""out = gate · sigmoid(gate) · up from one [T,2F] tensor, gate first.

Source: Shazeer, "GLU variants improve transformer", 2020, eq. 6 (SwiGLU).
"""

from __future__ import annotations

import numpy as np

from bedplate.kernels.formats import Array, Float64Array, decode
from bedplate.kernels.reference.rows import rows_in_use
from bedplate.kernels.tolerance import stored


def reference(gate_up: Array, count: Array | None = None) -> Float64Array:
    """fp64 result, [count, F]."""
    values = decode(gate_up[: rows_in_use("silu_mul", count, gate_up.shape[0])])
    half = gate_up.shape[1] // 2
    gate, up = values[:, :half], values[:, half:]
    with np.errstate(over="ignore", invalid="ignore"):
        result: Float64Array = gate / (1 + np.exp(-gate)) * up
    return result


def bound(gate_up: Array, count: Array | None = None, *, out_format: str = "f32") -> Float64Array:
    """Relative 16u: exponential to 4 ulp (8u), a sum, a quotient and a product to 2u each.

    Where exp(-gate) leaves fp32 (gate below -87) the true value is at most
    87·2^-125·|up| and zero is accepted: one such term is added.
    """
    result = reference(gate_up, count)
    half = gate_up.shape[1] // 2
    up = np.abs(decode(gate_up[: result.shape[0], half:]))
    u = 2.0**-24
    with np.errstate(invalid="ignore"):
        return stored(result, 16 * u * np.abs(result) + 90 * 2.0**-125 * (1 + up), out_format)


def cost(t: int, f: int) -> tuple[int, int]:
    """(bytes, FLOP) for f32 in and out, the exponential counted as one."""
    return 12 * t * f, 5 * t * f
