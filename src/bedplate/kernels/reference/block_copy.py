"""Copy whole cache blocks, (source, destination) pairs over all layers at once."""

from __future__ import annotations

import numpy as np

from bedplate.kernels.errors import IndexRangeError, OverlapError
from bedplate.kernels.formats import Array, Float64Array
from bedplate.kernels.reference.rows import rows_in_use


def check_pairs(pairs: Array, blocks: int) -> None:
    """Refuse foreign blocks and pairs whose order would matter.

    Raises `IndexRangeError`, or `OverlapError` when a destination is also a
    source or the destination of another pair.
    """
    for source, destination in pairs.tolist():
        if not (0 <= source < blocks and 0 <= destination < blocks):
            raise IndexRangeError(
                f"block_copy: pair ({source}, {destination}), the cache has {blocks} blocks"
            )
    destinations = pairs[:, 1].tolist()
    repeated = sorted({d for d in destinations if destinations.count(d) > 1})
    crossed = sorted(set(destinations) & set(pairs[:, 0].tolist()))
    if repeated or crossed:
        raise OverlapError(
            f"block_copy: block {(repeated + crossed)[0]} is written while also in use by a pair"
        )


def reference(
    pairs: Array, count: Array | None, k_cache: Array, v_cache: Array
) -> tuple[Array, Array]:
    """Both caches [layers,blocks,Hkv,block_size,D] after the copies."""
    used = pairs[: rows_in_use("block_copy", count, pairs.shape[0])]
    check_pairs(used, k_cache.shape[1])
    out_k, out_v = k_cache.copy(), v_cache.copy()
    out_k[:, used[:, 1]] = k_cache[:, used[:, 0]]
    out_v[:, used[:, 1]] = v_cache[:, used[:, 0]]
    return out_k, out_v


def bound(*arrays: Array | None, out_format: str = "f32") -> Float64Array:
    """Zero: a copy."""
    del arrays, out_format
    return np.zeros(())


def cost(pairs: int, layers: int, block_bytes: int) -> tuple[int, int]:
    """(bytes, FLOP): K and V read and written in every layer."""
    return 4 * pairs * layers * block_bytes, 0
