"""Causal attention of a ragged batch over a paged cache, grouped heads.

Token j of sequence s sits at position context_length[s] - queries[s] + j and
sees positions up to its own, at most `sliding_window` of them when that is set.
Source: Vaswani et al. 2017, eq. 1; Kwon et al., "PagedAttention", 2023; the
soft cap cap·tanh(score/cap) is that of Gemma 2, 2024, section 2.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bedplate.kernels.errors import IndexRangeError
from bedplate.kernels.formats import Array, Float64Array, decode
from bedplate.kernels.tolerance import DEVIATIONS, stored

Attended = tuple[int, int, Float64Array, Float64Array, Float64Array, Float64Array]


def reference(
    q: Array,
    k_cache: Array,
    v_cache: Array,
    block_table: Array,
    query_start: Array,
    context_length: Array,
    sequence_count: Array | None = None,
    *,
    scale: float,
    sliding_window: int = 0,
    soft_cap: float = 0.0,
) -> Float64Array:
    """[T,Hq,D] in fp64; tokens outside every sequence are NaN (never written)."""
    out = np.full(q.shape, np.nan)
    for token, head, weights, _, values, _ in _attended(
        q,
        k_cache,
        v_cache,
        block_table,
        query_start,
        context_length,
        sequence_count,
        scale=scale,
        sliding_window=sliding_window,
        soft_cap=soft_cap,
    ):
        out[token, head] = weights @ values
    return out


def bound(
    q: Array,
    k_cache: Array,
    v_cache: Array,
    block_table: Array,
    query_start: Array,
    context_length: Array,
    sequence_count: Array | None = None,
    *,
    scale: float,
    sliding_window: int = 0,
    soft_cap: float = 0.0,
    out_format: str = "f32",
) -> Float64Array:
    """Weighted |v| times the relative error of the weights, plus the sum over keys.

    A score errs by e = c·sqrt(D+1)·u·scale·|q|·|k| + 4u·|score| (soft cap and
    scaling); a weight exp(s - max)/sum then by 2·max(e) and by 2^-21 for the
    exponential, its argument rounded at up to |s - max| <= 2·max|score|; the
    online rescaling and the sum over L keys add c·sqrt(L+1)·u.
    """
    u = 2.0**-24
    error = np.full(q.shape, np.nan)
    result = np.full(q.shape, np.nan)
    for token, head, weights, scores, values, magnitude in _attended(
        q,
        k_cache,
        v_cache,
        block_table,
        query_start,
        context_length,
        sequence_count,
        scale=scale,
        sliding_window=sliding_window,
        soft_cap=soft_cap,
    ):
        keys = len(weights)
        score_error = DEVIATIONS * np.sqrt(q.shape[2] + 1.0) * u * magnitude + 6 * u * np.abs(
            scores
        )
        relative = 2 * score_error.max() + 2.0**-21 + DEVIATIONS * np.sqrt(keys + 1.0) * u
        error[token, head] = relative * (weights @ np.abs(values)) + keys * 2.0**-126
        result[token, head] = weights @ values
    return stored(result, error, out_format)


def _attended(
    q: Array,
    k_cache: Array,
    v_cache: Array,
    block_table: Array,
    query_start: Array,
    context_length: Array,
    sequence_count: Array | None,
    *,
    scale: float,
    sliding_window: int,
    soft_cap: float,
) -> Iterator[Attended]:
    """Yield (token, head, weights, scores, values, |score| magnitude) per query row."""
    blocks, kv_heads, block_size, _ = k_cache.shape
    group = q.shape[1] // kv_heads
    sequences = block_table.shape[0] if sequence_count is None else int(sequence_count[0])
    queries, scale = decode(q), float(np.float32(scale))
    for s in range(sequences):
        start, end, length = int(query_start[s]), int(query_start[s + 1]), int(context_length[s])
        if end == start:
            continue
        table = block_table[s, : -(-length // block_size)]
        if len(table) and (table.min() < 0 or table.max() >= blocks):
            bad = int(table[(table < 0) | (table >= blocks)][0])
            raise IndexRangeError(
                f"paged_attention: block {bad} of sequence {s}, the cache has {blocks}"
            )
        for kv_head in range(kv_heads):
            keys = decode(k_cache[table, kv_head].reshape(-1, q.shape[2])[:length])
            values = decode(v_cache[table, kv_head].reshape(-1, q.shape[2])[:length])
            for token in range(start, end):
                last = length - (end - token) + 1
                first = max(0, last - sliding_window) if sliding_window else 0
                for head in range(kv_head * group, (kv_head + 1) * group):
                    row = queries[token, head]
                    scores = keys[first:last] @ row * scale
                    magnitude = np.abs(keys[first:last]) @ np.abs(row) * scale
                    if soft_cap:
                        scores = soft_cap * np.tanh(scores / soft_cap)
                    weights = np.exp(scores - scores.max())
                    yield (
                        token,
                        head,
                        weights / weights.sum(),
                        scores,
                        values[first:last],
                        magnitude,
                    )


def cost(
    tokens: int, context: int, heads: int, kv_heads: int, d: int, cache_bytes: int
) -> tuple[int, int]:
    """(bytes, FLOP) of one sequence: K and V read once, every query sees `context` keys."""
    return (
        2 * context * kv_heads * d * cache_bytes + 8 * tokens * heads * d,
        4 * tokens * context * heads * d,
    )
