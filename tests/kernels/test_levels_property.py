"""Random shapes, layouts and counts at every level: the reference is the oracle."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.hal.api import DType
from bedplate.kernels.api import BLOCK_FORMATS, bf16_from_f32, encode_blocks, kv_cache_shape
from bedplate.kernels.rig import Layout, Rig

CAST = {"f32": np.asarray, "bf16": bf16_from_f32}
LAYOUT = st.builds(Layout, row_gap=st.integers(0, 40), offset=st.integers(0, 5))
SEED = st.integers(0, 2**32 - 1)
FEW = settings(max_examples=40, deadline=None)


def used(rows: int, part: float) -> np.ndarray:
    """A count of some of the rows."""
    return np.array([round(rows * part)], np.uint32)


@given(
    st.integers(0, 40), st.integers(1, 70), st.integers(0, 300), st.floats(0, 1),
    st.sampled_from(["f32", "bf16"]), st.sampled_from(["f32", "bf16"]),
    st.sampled_from(["f32", "bf16"]), LAYOUT, SEED,
)  # fmt: skip
@FEW
def test_matmul(
    rig: Rig,
    m: int,
    n: int,
    k: int,
    part: float,
    a: str,
    b: str,
    out: str,
    layout: Layout,
    seed: int,
) -> None:
    """Any shape, mixture of formats and layout."""
    rng = np.random.default_rng(seed)
    x = CAST[a](rng.standard_normal((m, k)).astype(np.float32))
    w = CAST[b](rng.standard_normal((n, k)).astype(np.float32))
    residual = rng.standard_normal((m, n)).astype(np.float32) if seed % 2 else None
    packed = rig.ops.pack("matmul", w, DType[b.upper()])
    inputs = [x, w.T, None, residual, used(m, part)]
    rig.check("matmul", inputs, out_shapes=[(m, n)], out_format=out, layout=layout, weight=packed)


@given(
    st.integers(0, 40), st.integers(1, 70), st.integers(1, 10), st.floats(0, 1),
    st.sampled_from(sorted(BLOCK_FORMATS)), st.integers(0, 1), st.floats(-8, 8), LAYOUT, SEED,
)  # fmt: skip
@FEW
def test_quantized_matmul(
    rig: Rig, m: int, n: int, blocks: int, part: float, kind: str, activation: int,
    exponent: float, layout: Layout, seed: int,
) -> None:  # fmt: skip
    """Any shape and format, activations of any size, some blocks of them zero."""
    rng = np.random.default_rng(seed)
    k = 32 * blocks
    x = (rng.standard_normal((m, k)) * 10**exponent).astype(np.float32)
    x[:, : k // 2] *= rng.integers(0, 2)
    w = encode_blocks(rng.standard_normal((n, k)).astype(np.float32), BLOCK_FORMATS[kind])
    packed = rig.ops.pack("quantized_matmul", w.data, DType[kind.upper()], (n, k))
    rig.check(
        "quantized_matmul", [x, w, None, None, used(m, part)], out_shapes=[(m, n)],
        layout=layout, weight=packed, activation=activation,
    )  # fmt: skip


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 70)), min_size=1, max_size=5),
    st.sampled_from([1, 2, 3, 4, 8]), st.integers(1, 3), st.sampled_from([16, 32, 64, 80, 128]),
    st.sampled_from([16, 32]), st.sampled_from(["f32", "bf16"]), st.integers(0, 40), SEED,
)  # fmt: skip
@FEW
def test_paged_attention(
    rig: Rig, batch: list[tuple[int, int]], group: int, kv_heads: int, dim: int, size: int,
    kind: str, window: int, seed: int,
) -> None:  # fmt: skip
    """Any ragged batch of chunks after histories, with and without a window."""
    rng = np.random.default_rng(seed)
    queries = [q for q, _ in batch]
    lengths = np.array([q + history for q, history in batch], np.int32)
    wide = max(1, -(-int(lengths.max()) // size))
    table = rng.permutation(len(batch) * wide).astype(np.int32).reshape(len(batch), wide)
    shape = kv_cache_shape(table.size, kv_heads, size, dim)
    k, v = (CAST[kind](rng.standard_normal(shape).astype(np.float32)) for _ in range(2))
    start = np.cumsum([0, *queries]).astype(np.int32)
    q = rng.standard_normal((int(start[-1]), kv_heads * group, dim)).astype(np.float32)
    rig.check(
        "paged_attention", [q, k, v, table, start, lengths, None], out_shapes=[q.shape],
        scale=dim**-0.5, sliding_window=window,
    )  # fmt: skip


@given(
    st.integers(0, 30), st.integers(1, 300), st.floats(0, 1), st.floats(-15, 15),
    st.sampled_from(["f32", "bf16"]), LAYOUT, SEED,
)  # fmt: skip
@FEW
def test_rowwise(
    rig: Rig,
    rows: int,
    width: int,
    part: float,
    exponent: float,
    out: str,
    layout: Layout,
    seed: int,
) -> None:
    """rmsnorm, silu_mul and convert at any width and magnitude."""
    rng = np.random.default_rng(seed)
    count = used(rows, part)
    x = (rng.standard_normal((rows, 2 * width)) * 10**exponent).astype(np.float32)
    weight = rng.standard_normal(2 * width).astype(np.float32)
    rig.check("rmsnorm", [x, weight, count], out_shapes=[x.shape], out_format=out, layout=layout)
    rig.check("silu_mul", [x, count], out_shapes=[(rows, width)], out_format=out, layout=layout)
    rig.check("convert", [x, count], out_shapes=[x.shape], out_format="bf16", layout=layout)
