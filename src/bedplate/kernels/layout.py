"""The layout of the paged key-value cache; serving asks for it here.

K and V are two tensors. A block holds `block_size` tokens of every KV head;
one head's tokens are contiguous, so attention streams them.
"""

from __future__ import annotations

from bedplate.kernels.errors import ShapeError

KV_LAYOUT = ("block", "kv_head", "token", "head_dim")
BLOCK_SIZES = (16, 32)
"""Tokens per block that every implementation accepts."""
HEAD_DIMS = (64, 128)
"""Head dimensions the tuned implementations are written for; others run on generic."""


def kv_cache_shape(
    blocks: int, kv_heads: int, block_size: int, head_dim: int
) -> tuple[int, int, int, int]:
    """Shape of one layer's K (or V) tensor in `KV_LAYOUT` order.

    Raises `ShapeError` for a block size outside `BLOCK_SIZES` or a non-positive extent.
    """
    if block_size not in BLOCK_SIZES:
        raise ShapeError(f"KV block size is 16 or 32 tokens, got {block_size}")
    if min(blocks, kv_heads, head_dim) < 1:
        raise ShapeError(f"KV extents are positive, got {(blocks, kv_heads, head_dim)}")
    return (blocks, kv_heads, block_size, head_dim)
