"""out[t] = table[ids[t]], decoded to f32; also gathers rows of hidden states."""

from __future__ import annotations

import numpy as np

from bedplate.kernels.errors import IndexRangeError
from bedplate.kernels.formats import BLOCK_ELEMENTS, Array, BlockArray, Float64Array, decode
from bedplate.kernels.reference.rows import rows_in_use


def reference(table: Array | BlockArray, ids: Array, count: Array | None = None) -> Float64Array:
    """[count, H], exact fp64 values of the rows. Raises `IndexRangeError` for a foreign id."""
    rows = rows_in_use("embedding", count, ids.shape[0])
    for token, row in enumerate(ids[:rows]):
        if not 0 <= row < table.shape[0]:
            raise IndexRangeError(
                f"embedding: id {row} of token {token}, the table has {table.shape[0]} rows"
            )
    if isinstance(table, BlockArray):
        picked = BlockArray(table.format, table.data[ids[:rows]], (rows, table.shape[1]))
        return decode(picked)
    return decode(table[ids[:rows]])


def bound(
    table: Array | BlockArray, ids: Array, count: Array | None = None, *, out_format: str = "f32"
) -> Float64Array:
    """Zero, but for Q4_1: its code·scale + minimum is rounded once, or twice unfused.

    f32 and bf16 are copied; a code of at most 8 bits times an 11-bit float16
    scale is exact in fp32.
    """
    del out_format
    result = reference(table, ids, count)
    if not isinstance(table, BlockArray) or not table.format.has_minimum:
        return np.zeros_like(result)
    blocks = table.data[ids[: result.shape[0]]].reshape(
        result.shape[0], -1, table.format.block_bytes
    )
    minimum = np.abs(blocks[..., 2:4].copy().view(np.float16).astype(np.float64))
    error: Float64Array = np.repeat(minimum[..., 0], BLOCK_ELEMENTS, axis=-1)
    return 2.0**-24 * (np.abs(result) + error)


def cost(t: int, h: int, row_bytes: int) -> tuple[int, int]:
    """(bytes, FLOP): the rows read, f32 written."""
    return t * (row_bytes + 4 * h), 0
