"""Position, cache, attention, sampling and copying at every implementation level."""

import numpy as np
import pytest

from bedplate.hal.api import DeviceError, DType, HalError
from bedplate.kernels.api import (
    bf16_from_f32,
    compare,
    decode,
    encode_blocks,
    kv_cache_shape,
    pack_rows,
    reference,
)
from bedplate.kernels.formats import BLOCK_FORMATS
from bedplate.kernels.reference.sample import margin
from bedplate.kernels.registry import get
from bedplate.kernels.rig import DENSE, MISALIGNED, STRIDED, Layout, Rig

LAYOUTS = pytest.mark.parametrize(
    "layout", [DENSE, STRIDED, MISALIGNED], ids=["dense", "strided", "misaligned"]
)
RNG = np.random.default_rng(12)
CAST = {"f32": np.asarray, "bf16": bf16_from_f32}


def normal(*shape: int) -> np.ndarray:
    """Standard normal float32."""
    return RNG.standard_normal(shape).astype(np.float32)


def count(value: int | None) -> np.ndarray | None:
    """A count tensor."""
    return None if value is None else np.array([value], np.uint32)


@LAYOUTS
@pytest.mark.parametrize("pairing", [0, 1])
@pytest.mark.parametrize("head_dim", [2, 64, 100, 128])
def test_rope(rig: Rig, layout: Layout, pairing: int, head_dim: int) -> None:
    """Both pairings, far positions and a scale; rows past count keep their bits."""
    x = normal(5, 3, head_dim)
    positions = np.array([0, 1, 8191, 131071, 5], np.int32)
    frequency = (100_000.0 ** -(np.arange(head_dim // 2) / (head_dim // 2))).astype(np.float32)
    inputs = [x, positions, frequency, count(4)]
    attributes = {"pairing": pairing, "scale": 1.25}
    (out,) = rig.run("rope", inputs, layout=layout, **attributes)
    op = get("rope")
    outcome = compare(
        decode(out), op.reference(*inputs, **attributes), op.bound(*inputs, **attributes)
    )
    assert outcome.accepted, outcome.message


@LAYOUTS
@pytest.mark.parametrize("cache_kind", ["f32", "bf16"])
@pytest.mark.parametrize(("heads", "size", "dim"), [(3, 16, 64), (1, 32, 128), (2, 16, 20)])
def test_kv_write(
    rig: Rig, layout: Layout, cache_kind: str, heads: int, size: int, dim: int
) -> None:
    """Exactly the named slots change; negative ones and rows past count write nothing."""
    cache = CAST[cache_kind](normal(*kv_cache_shape(4, heads, size, dim)))
    k, v = normal(5, heads, dim), normal(5, heads, dim)
    slots = np.array([4 * size - 1, -1, 0, size + 3, 7], np.int32)
    inputs = [k, v, slots, count(4), cache, cache.copy()]
    written = rig.run("kv_write", inputs, layout=layout)
    for got, expected in zip(written, reference("kv_write")(*inputs), strict=True):
        np.testing.assert_array_equal(got, expected)


def attention_case(
    queries: list[int],
    lengths: list[int],
    heads: int,
    kv_heads: int,
    dim: int,
    size: int,
    kind: str,
) -> list[np.ndarray]:
    """A ragged batch over shuffled blocks; unwritten slots are NaN and spare entries foreign."""
    wide = max(-(-n // size) for n in lengths) + 1
    order = RNG.permutation(sum(-(-n // size) for n in lengths) + 2)
    k = np.full(kv_cache_shape(len(order), kv_heads, size, dim), np.nan, np.float32)
    v, table = k.copy(), np.full((len(lengths), wide), 2**30, np.int32)
    taken = 0
    for s, length in enumerate(lengths):
        for position in range(length):
            if position % size == 0:
                table[s, position // size] = order[taken]
                taken += 1
            block = table[s, position // size]
            k[block, :, position % size] = normal(kv_heads, dim)
            v[block, :, position % size] = normal(kv_heads, dim)
    start = np.cumsum([0, *queries]).astype(np.int32)
    q = normal(int(start[-1]), heads, dim)
    return [q, CAST[kind](k), CAST[kind](v), table, start, np.array(lengths, np.int32)]


@pytest.mark.parametrize("kind", ["f32", "bf16"])
@pytest.mark.parametrize("out_format", ["f32", "bf16"])
@pytest.mark.parametrize(
    ("heads", "kv_heads", "dim", "size"), [(9, 3, 64, 16), (8, 1, 128, 32), (2, 2, 32, 16)]
)
def test_paged_attention(
    rig: Rig, kind: str, out_format: str, heads: int, kv_heads: int, dim: int, size: int
) -> None:
    """Prefill, chunks after history and decode in one batch; NaN past every length stays out."""
    arrays = attention_case([1, 7, 20, 0, 1], [33, 7, 50, 3, 1], heads, kv_heads, dim, size, kind)
    rig.check(
        "paged_attention",
        [*arrays, None],
        out_shapes=[arrays[0].shape],
        out_format=out_format,
        scale=dim**-0.5,
    )


@LAYOUTS
@pytest.mark.parametrize(("window", "cap"), [(0, 0.0), (1, 0.0), (17, 0.0), (0, 3.0), (5, 2.0)])
def test_paged_attention_window_and_cap(rig: Rig, layout: Layout, window: int, cap: float) -> None:
    """Sliding windows that start inside a block, soft caps, strided queries and outputs."""
    arrays = attention_case([9, 1], [41, 18], 6, 2, 64, 16, "bf16")
    rig.check(
        "paged_attention",
        [*arrays, None],
        out_shapes=[arrays[0].shape],
        layout=layout,
        scale=0.3,
        sliding_window=window,
        soft_cap=cap,
    )


def test_paged_attention_writes_only_sequences_in_use(rig: Rig) -> None:
    """With sequence_count below S, later sequences' rows keep their poison."""
    arrays = attention_case([2, 3, 4], [5, 3, 9], 3, 1, 64, 16, "bf16")
    (out,) = rig.run(
        "paged_attention", [*arrays, count(2)], out_shapes=[arrays[0].shape], scale=0.1
    )
    assert np.isfinite(out[:5]).all()
    assert np.isnan(out[5:]).all()


def test_a_row_does_not_depend_on_its_batch(rig: Rig) -> None:
    """Attention and both products give a row the same bits alone and among others."""
    arrays = attention_case([1, 12, 1], [40, 12, 27], 9, 3, 64, 16, "bf16")
    together = rig.run("paged_attention", [*arrays, None], out_shapes=[arrays[0].shape], scale=0.1)
    q, k, v, table, start, length = arrays
    for s in range(3):
        rows = slice(start[s], start[s + 1])
        ends = np.array([0, start[s + 1] - start[s]], np.int32)
        alone = [q[rows], k, v, table[s : s + 1], ends, length[s : s + 1], None]
        (single,) = rig.run("paged_attention", alone, out_shapes=[q[rows].shape], scale=0.1)
        np.testing.assert_array_equal(single, together[0][rows])
    a, w = normal(29, 96), normal(40, 96)
    for kind in ("f32", "bf16"):
        packed = rig.ops.pack("matmul", CAST[kind](w), DType[kind.upper()])
        inputs = [CAST[kind](a), CAST[kind](w).T, None, None, None]
        (whole,) = rig.run("matmul", inputs, out_shapes=[(29, 40)], weight=packed)
        inputs[0] = inputs[0][17:18]
        (one,) = rig.run("matmul", inputs, out_shapes=[(1, 40)], weight=packed)
        np.testing.assert_array_equal(one[0], whole[17])
    blocks = encode_blocks(w, BLOCK_FORMATS["q4_1"])
    packed = rig.ops.pack("quantized_matmul", blocks.data, DType.Q4_1, (40, 96))
    for activation in (0, 1):
        inputs = [a, blocks, None, None, None]
        (whole,) = rig.run(
            "quantized_matmul", inputs, out_shapes=[(29, 40)], weight=packed, activation=activation
        )
        inputs[0] = a[17:18]
        (one,) = rig.run(
            "quantized_matmul", inputs, out_shapes=[(1, 40)], weight=packed, activation=activation
        )
        np.testing.assert_array_equal(one[0], whole[17])


SAMPLERS: list[dict[str, float]] = [
    {},
    {"temperature": 1.0},
    {"temperature": 0.7, "top_k": 40},
    {"temperature": 1.3, "top_p": 0.9},
    {"temperature": 0.1, "top_k": 40, "top_p": 0.95},
    {"temperature": 1.0, "min_p": 0.05},
    {"temperature": 50.0, "top_k": 100, "min_p": 0.5},
    {"temperature": 1.0, "top_p": 0.0},
    {"temperature": 1e-3, "min_p": 2.0},
]


@LAYOUTS
@pytest.mark.parametrize("width", [1, 33, 5000])
def test_sample(rig: Rig, layout: Layout, width: int) -> None:
    """Every filter and mixtures of them choose the reference's token wherever it is not a tie."""
    rows = [
        {**SAMPLERS[i % len(SAMPLERS)], "seed": 2**40 + i, "token_index": i // 3} for i in range(54)
    ]
    logits = normal(len(rows), width) * 4
    logits[:, : width // 3] = -np.inf
    logits[0, 0] = logits[0].max()  # a tie: the lower id wins
    packed = pack_rows(rows)
    tokens, logprob = rig.run(
        "sample",
        [logits, packed, count(53)],
        out_shapes=[(len(rows),), (len(rows),)],
        layout=layout,
    )
    expected, expected_logprob = reference("sample")(logits, packed, count(53))
    clear = margin(logits, packed)[:53] > 1e-6
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(tokens[:53][clear], expected[clear])
    bound = get("sample").bound(logits, packed, count(53))
    outcome = compare(decode(logprob[:53])[clear], expected_logprob[clear], bound[clear])
    assert outcome.accepted, outcome.message
    assert tokens[53] == -1
    assert np.isnan(logprob[53])


def test_sample_gives_up_only_the_bad_row(rig: Rig) -> None:
    """NaN, no finite maximum and a negative temperature give -1 and NaN; neighbours go on."""
    logits = normal(6, 100)
    logits[1, 77], logits[2], logits[3, 5] = np.nan, -np.inf, np.inf
    rows = pack_rows([{}, {}, {"temperature": 1.0}, {}, {"temperature": -1.0}, {}])
    tokens, logprob = rig.run("sample", [logits, rows, None], out_shapes=[(6,), (6,)])
    assert tokens.tolist() == [int(logits[0].argmax()), -1, -1, -1, -1, int(logits[5].argmax())]
    assert np.isnan(logprob[1:5]).all()
    assert np.isfinite(logprob[[0, 5]]).all()


def test_sample_of_equal_logits_is_uniform_in_id_order(rig: Rig) -> None:
    """With all logits alike the draw picks id floor(u·V): the order is by id."""
    rows = pack_rows([{"temperature": 1.0, "seed": 5, "token_index": i} for i in range(40)])
    logits = np.full((40, 1000), 3.5, np.float32)
    (tokens,) = rig.run("sample", [logits, rows, None], out_shapes=[(40,), None])
    np.testing.assert_array_equal(tokens, reference("sample")(logits, rows)[0])


@pytest.mark.parametrize("kind", ["f32", "bf16"])
def test_block_copy(rig: Rig, kind: str) -> None:
    """All layers of K and V, pairs past count left alone."""
    k = CAST[kind](normal(3, 6, 2, 16, 8))
    v = CAST[kind](normal(3, 6, 2, 16, 8))
    pairs = np.array([[0, 4], [2, 1], [5, 3]], np.int32)
    written = rig.run("block_copy", [pairs, count(2), k, v])
    for got, expected in zip(written, reference("block_copy")(pairs, count(2), k, v), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_bad_indices_are_named_and_nothing_is_hurt(rig: Rig) -> None:
    """Ids, slots, blocks and pairs outside their table fail the launch with their value."""
    cache = normal(*kv_cache_shape(2, 1, 16, 32))
    one = normal(1, 1, 32)
    batch = [np.array([[9, 9]], np.int32), np.array([0, 1], np.int32), np.array([20], np.int32)]
    cases = [
        ("embedding", [normal(4, 32), np.array([0, 4], np.int32), None], [(2, 32)], {}, "id 4"),
        ("embedding", [normal(4, 32), np.array([-2], np.int32), None], [(1, 32)], {}, "id -2"),
        ("kv_write", [one, one, np.array([32], np.int32), None, cache, cache], [], {}, "slot 32"),
        (
            "paged_attention",
            [one, cache, cache, *batch, None],
            [one.shape],
            {"scale": 1.0},
            "block 9",
        ),
        (
            "paged_attention",
            [one, cache, cache, batch[0], batch[1], np.array([33], np.int32), None],
            [one.shape],
            {"scale": 1.0},
            "context of 33",
        ),
        (
            "block_copy",
            [np.array([[0, 7]], np.int32), None, cache[None], cache[None]],
            [],
            {},
            "block 7",
        ),
        (
            "block_copy",
            [np.array([[0, 1], [1, 0]], np.int32), None, cache[None], cache[None]],
            [],
            {},
            "in use by pair",
        ),
    ]
    for name, inputs, shapes, attributes, words in cases:
        with pytest.raises((DeviceError, HalError), match=words):
            rig.run(name, inputs, out_shapes=shapes, **attributes)
    rig.check("embedding", [normal(4, 32), np.array([3], np.int32), None], out_shapes=[(1, 32)])
