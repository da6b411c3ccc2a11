"""Pick one token per row of logits [R,V].

Temperature, then top-k, top-p and min-p on the tempered distribution, then the
inverse CDF over the kept tokens in descending probability (ties: lower id
first), driven by Philox4x32-10. Temperature 0 takes the highest logit.
A row with a NaN, without a finite maximum or with a negative temperature gives
token -1 and leaves the others alone.
Source: Holtzman et al. 2020 (top-p); Nguyen et al. 2024 (min-p).
"""

from __future__ import annotations

import numpy as np

from bedplate.kernels.formats import Array, Float64Array, decode
from bedplate.kernels.philox import uniform
from bedplate.kernels.reference.rows import rows_in_use

SAMPLE_ROW = np.dtype(
    {
        "names": ["temperature", "top_p", "min_p", "top_k", "seed", "token_index"],
        "formats": ["<f4", "<f4", "<f4", "<u4", "<u8", "<u8"],
        "offsets": [0, 4, 8, 12, 16, 24],
        "itemsize": 64,
    }
)
"""`bp_sample_row`; top_k 0, top_p 1 and min_p 0 switch their filter off."""


def pack_rows(rows: list[dict[str, float | int]]) -> Array:
    """uint8 [R, 64] from dictionaries; absent fields switch their filter off."""
    out = np.zeros(len(rows), dtype=SAMPLE_ROW)
    out["top_p"] = 1.0
    for index, row in enumerate(rows):
        for name, value in row.items():
            out[name][index] = value
    return out.view(np.uint8).reshape(len(rows), SAMPLE_ROW.itemsize)


def reference(logits: Array, rows: Array, count: Array | None = None) -> tuple[Array, Float64Array]:
    """(tokens int32 [count], logprob fp64 [count]).

    The log-probability is of the untempered, unfiltered distribution.
    """
    used = rows_in_use("sample", count, logits.shape[0])
    tokens = np.full(used, -1, dtype=np.int32)
    logprob = np.full(used, np.nan)
    for r in range(used):
        values = decode(logits[r])
        fields = rows[r].reshape(-1).view(SAMPLE_ROW)[0]
        if not np.isfinite(values.max()) or not fields["temperature"] >= 0:
            continue
        tokens[r] = _pick(values, rows[r])[0]
        logprob[r] = values[tokens[r]] - _log_sum_exp(values)
    return tokens, logprob


def margin(logits: Array, rows: Array) -> Float64Array:
    """[R]: how far the draw lies from the nearest step of the CDF, filters included.

    Below about 1e-6 an fp32 implementation may rightly choose a neighbour.
    """
    return np.array([_pick(decode(logits[r]), rows[r])[1] for r in range(logits.shape[0])])


def bound(
    logits: Array, rows: Array, count: Array | None = None, *, out_format: str = "f32"
) -> Float64Array:
    """Of the log-probability: 8u of the largest magnitude, and the sum over V."""
    del rows, out_format
    used = rows_in_use("sample", count, logits.shape[0])
    largest = np.abs(decode(logits[:used])).max(axis=-1, initial=0.0)
    u = 2.0**-24
    error: Float64Array = 8 * u * (largest + 12) + 7 * np.sqrt(logits.shape[1] + 1.0) * u
    return error


def _log_sum_exp(values: Float64Array) -> float:
    top = values.max()
    return float(top + np.log(np.exp(values - top).sum()))


def _pick(values: Float64Array, row: Array) -> tuple[int, float]:
    """(token, margin) of one row; the margin of a greedy pick is infinite."""
    fields = row.reshape(-1).view(SAMPLE_ROW)[0]
    temperature = float(fields["temperature"])
    if temperature == 0.0:
        return int(np.argmax(values)), np.inf
    tempered = values / temperature
    weights = np.exp(tempered - tempered.max())
    probability = weights / weights.sum()
    order = np.lexsort((np.arange(len(values)), -probability))
    ranked = probability[order]
    kept = len(ranked)
    if 0 < int(fields["top_k"]) < kept:
        kept = int(fields["top_k"])
    edge = np.inf
    top_p = float(fields["top_p"])
    if top_p < 1.0:
        renormalised = ranked[:kept].cumsum() / ranked[:kept].sum()
        edge = min(edge, float(np.abs(renormalised - top_p).min()))
        kept = min(kept, int(np.searchsorted(renormalised, top_p)) + 1)
    min_p = min(float(fields["min_p"]), 1.0)
    if min_p > 0.0:
        edge = min(edge, float(np.abs(ranked[:kept] / ranked[0] - min_p).min()))
        kept = max(1, int((ranked[:kept] >= min_p * ranked[0]).sum()))
    draw = uniform(int(fields["seed"]), int(fields["token_index"]))
    cdf = ranked[:kept].cumsum() / ranked[:kept].sum()
    chosen = min(int(np.searchsorted(cdf, draw, side="right")), kept - 1)
    edge = min(edge, float(np.abs(cdf[:-1] - draw).min(initial=np.inf)))
    return int(order[chosen]), edge


def cost(r: int, v: int) -> tuple[int, int]:
    """(bytes, FLOP): logits read once."""
    return 4 * r * v, 3 * r * v
