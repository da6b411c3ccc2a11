"""Store k and v [T,Hkv,D] into their cache slots; slot = block · block_size + offset."""

from __future__ import annotations

import numpy as np

from bedplate.kernels.errors import IndexRangeError
from bedplate.kernels.formats import Array, Float64Array, bf16_from_f32
from bedplate.kernels.reference.rows import rows_in_use


def reference(
    k: Array,
    v: Array,
    slots: Array,
    count: Array | None,
    k_cache: Array,
    v_cache: Array,
) -> tuple[Array, Array]:
    """Both caches, in their own format. A negative slot is skipped.

    Raises `IndexRangeError` for a slot past the cache. Two tokens must not
    share a slot: an implementation writes them in any order.
    """
    rows = rows_in_use("kv_write", count, k.shape[0])
    blocks, _, block_size, _ = k_cache.shape
    out_k, out_v = k_cache.copy(), v_cache.copy()
    for token in range(rows):
        slot = int(slots[token])
        if slot < 0:
            continue
        if slot >= blocks * block_size:
            raise IndexRangeError(
                f"kv_write: slot {slot} of token {token}, the cache has {blocks * block_size}"
            )
        block, offset = divmod(slot, block_size)
        for source, cache in ((k, out_k), (v, out_v)):
            cache[block, :, offset] = (
                bf16_from_f32(source[token]) if cache.dtype == np.uint16 else source[token]
            )
    return out_k, out_v


def bound(*arrays: Array | None, out_format: str = "f32") -> Float64Array:
    """Zero: storing is exact, or one rounding to nearest even, which is unique."""
    del arrays, out_format
    return np.zeros(())


def cost(t: int, kv_heads: int, d: int, cache_bytes: int) -> tuple[int, int]:
    """(bytes, FLOP) with `cache_bytes` per stored element."""
    return 2 * t * kv_heads * d * (4 + cache_bytes), 0
