"""The references against independent formulations, special values and bad indices."""

import math

import numpy as np
import pytest

from bedplate.kernels.api import (
    BLOCK_FORMATS,
    IndexRangeError,
    OverlapError,
    ShapeError,
    UnknownOpError,
    bf16_from_f32,
    bound,
    compare,
    decode,
    encode_blocks,
    kv_cache_shape,
    pack_rows,
    reference,
)
from bedplate.kernels.philox import uniform
from bedplate.kernels.reference.sample import margin

RNG = np.random.default_rng(5)


def normal(*shape: int) -> np.ndarray:
    """Standard normal float32."""
    return RNG.standard_normal(shape).astype(np.float32)


def integers(*values: int) -> np.ndarray:
    """A vector of int32."""
    return np.array(values, np.int32)


def count(value: int) -> np.ndarray:
    """A count tensor."""
    return np.array([value], np.uint32)


def test_unknown_op_names_the_nearest() -> None:
    """A typing mistake gets a suggestion."""
    with pytest.raises(UnknownOpError, match="the nearest is 'rmsnorm'"):
        reference("rmsnrm")


def test_matmul_of_small_integers_is_exact_and_adds_bias_and_residual() -> None:
    """Hand-computed values, bf16 weights through a transposed view."""
    a = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    weight = bf16_from_f32(np.array([[1, -1], [2, 0.5], [0, 3]], np.float32))
    bias, residual = np.array([10, 20, 30], np.float32), np.full((3, 3), 0.5, np.float32)
    out = reference("matmul")(a, weight.T, bias, residual, count(2))
    assert out.tolist() == [[9.5, 23.5, 36.5], [9.5, 28.5, 42.5]]


def test_count_past_the_tensors_is_refused() -> None:
    """The message gives both numbers."""
    with pytest.raises(ShapeError, match="count is 4, the tensors hold 3"):
        reference("rmsnorm")(normal(3, 8), normal(8), count(4))


def test_quantized_matmul_equals_matmul_on_decoded_weights() -> None:
    """Blocks are only another way to write the weights."""
    a = normal(3, 64)
    for block_format in BLOCK_FORMATS.values():
        w = encode_blocks(normal(5, 64), block_format)
        expected = a.astype(np.float64) @ decode(w).T
        np.testing.assert_allclose(reference("quantized_matmul")(a, w), expected, rtol=1e-12)


def test_rmsnorm_of_a_constant_row() -> None:
    """A row of c normalises to sign(c); a NaN stays in its row."""
    x = np.full((2, 16), -3, np.float32)
    x[1, 5] = np.nan
    out = reference("rmsnorm")(x, np.ones(16, np.float32), eps=0.0)
    assert (out[0] == -1).all()
    assert np.isnan(out[1]).all()


def test_rope_is_a_rotation_by_position() -> None:
    """Both pairings as complex multiplication; the dot product depends on distance only."""
    frequency = np.array([1.0, 0.1, 0.01, 0.001], np.float32)
    x = normal(2, 1, 8)
    for pairing, order in ((0, [0, 4, 1, 5, 2, 6, 3, 7]), (1, list(range(8)))):
        out = reference("rope")(x, integers(3, 7), frequency, pairing=pairing)
        pairs = np.asarray(x, np.float64)[..., order].reshape(2, 1, 4, 2)
        spun = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(
            1j * np.array([3, 7])[:, None, None] * frequency.astype(np.float64)
        )
        got = out[..., order].reshape(2, 1, 4, 2)
        np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], spun, rtol=1e-12)
    same = np.repeat(x[:1], 2, axis=0)
    near = reference("rope")(same, integers(5, 9), frequency)
    far = reference("rope")(same, integers(1005, 1009), frequency)
    assert float((near[0] * near[1]).sum()) == pytest.approx(float((far[0] * far[1]).sum()))


def test_rope_leaves_rows_past_count() -> None:
    """Only the first `count` tokens turn; scale multiplies them."""
    x = normal(3, 2, 4)
    out = reference("rope")(x, integers(0, 0, 9), np.ones(2, np.float32), count(2), scale=2.0)
    np.testing.assert_array_equal(out, x * np.array([2, 2, 1])[:, None, None])


def test_kv_write_places_tokens_and_skips_negative_slots() -> None:
    """slot = block · block_size + offset; -1 writes nothing; past the cache is refused."""
    cache = np.full(kv_cache_shape(2, 1, 16, 4), np.nan, np.float32)
    k, v = normal(3, 1, 4), normal(3, 1, 4)
    out_k, out_v = reference("kv_write")(k, v, integers(17, -1, 0), None, cache, cache)
    np.testing.assert_array_equal(out_k[1, 0, 1], k[0, 0])
    np.testing.assert_array_equal(out_v[0, 0, 0], v[2, 0])
    assert np.isfinite(out_k).sum() == 8
    out_k, _ = reference("kv_write")(k, v, integers(31, -1, -1), None, cache, cache)
    np.testing.assert_array_equal(out_k[1, 0, 15], k[0, 0])
    with pytest.raises(IndexRangeError, match="slot 32 of token 1, the cache has 32"):
        reference("kv_write")(k, v, integers(0, 32, 0), None, cache, cache)


def test_convert_narrows_and_widens() -> None:
    """float32 to bf16 bits and back; only the first `count` rows."""
    x = np.array([[1.0, -2.5], [3.0, 4.0]], np.float32)
    bits = np.array([[0x3F80, 0xC020], [0x4040, 0x4080]], np.uint16)
    np.testing.assert_array_equal(reference("convert")(x), bits)
    np.testing.assert_array_equal(reference("convert")(bits), x)
    assert reference("convert")(x, count(1)).shape == (1, 2)


def test_copies_are_held_to_equality() -> None:
    """A bound of zero for what only moves; one unit in the last place is found."""
    x, pairs = normal(2, 3, 1, 16, 2), integers(0, 1).reshape(1, 2)
    k, v, slots = normal(3, 1, 2), normal(3, 1, 2), integers(0, 1, 2)
    for name, arrays in (
        ("block_copy", (pairs, None, x, x)),
        ("kv_write", (k, v, slots, None, x[0], x[0])),
        ("convert", (k[:, 0],)),
        ("embedding", (k[:, 0], integers(2, 0))),
    ):
        written = reference(name)(*arrays)
        right = decode(written[0] if isinstance(written, tuple) else written)
        allowed = np.broadcast_to(bound(name)(*arrays), right.shape)
        assert compare(right, right, allowed).accepted, name
        assert not compare(right * (1 + 2.0**-23), right, allowed).accepted, name


def test_a_row_with_a_minimum_may_lose_two_roundings() -> None:
    """Where the code and the minimum cancel, the rounding of either is all there is."""
    blocks = encode_blocks(np.linspace(-1, 1, 32, dtype=np.float32)[None], BLOCK_FORMATS["q4_1"])
    row = decode(blocks)
    allowed = bound("embedding")(blocks, integers(0))
    np.testing.assert_allclose(allowed, 2.0**-24 * (np.abs(row) + 1), rtol=1e-6)


def test_attention_equals_dense_causal_softmax() -> None:
    """Two ragged sequences, history plus chunk, against a dense formulation per head."""
    hq, hkv, d, size = 4, 2, 8, 16
    k, v = normal(5, hkv, size, d), normal(5, hkv, size, d)
    table = integers(3, 1, 4, -7).reshape(2, 2)
    start, length = integers(0, 5, 6), integers(20, 16)
    q = normal(6, hq, d)
    out = reference("paged_attention")(q, k, v, table, start, length, scale=0.3)
    for s in range(2):
        rows = range(start[s], start[s + 1])
        blocks = [b for b in table[s] if b >= 0]
        for h in range(hq):
            keys = np.concatenate([k[b, h // 2] for b in blocks]).astype(np.float64)[: length[s]]
            values = np.concatenate([v[b, h // 2] for b in blocks]).astype(np.float64)[: length[s]]
            for row in rows:
                seen = length[s] - (start[s + 1] - row) + 1
                w = np.exp(np.float32(0.3) * (keys[:seen] @ q[row, h].astype(np.float64)))
                np.testing.assert_allclose(out[row, h], w @ values[:seen] / w.sum(), rtol=1e-10)


def test_attention_window_and_soft_cap() -> None:
    """A window of 1 returns the own value; a tiny cap makes all seen keys weigh alike."""
    k, v, q = normal(1, 1, 16, 4), normal(1, 1, 16, 4), normal(6, 1, 4)
    args = (q, k, v, integers(0).reshape(1, 1), integers(0, 6), integers(6))
    own = reference("paged_attention")(*args, scale=1.0, sliding_window=1)
    np.testing.assert_allclose(own[:, 0], v[0, 0, :6])
    even = reference("paged_attention")(*args, scale=1.0, soft_cap=1e-9)
    np.testing.assert_allclose(even[5, 0], v[0, 0, :6].mean(axis=0, dtype=np.float64), rtol=1e-6)


def test_attention_never_looks_past_the_length() -> None:
    """Foreign block ids are refused inside the length and ignored past it."""
    k = normal(2, 1, 16, 4)
    q = normal(1, 1, 4)
    table = integers(1, 99).reshape(1, 2)
    reference("paged_attention")(q, k, k, table, integers(0, 1), integers(16), scale=1.0)
    with pytest.raises(IndexRangeError, match="block 99 of sequence 0, the cache has 2"):
        reference("paged_attention")(q, k, k, table, integers(0, 1), integers(17), scale=1.0)


def test_silu_mul_at_the_extremes() -> None:
    """Large gates pass, very negative ones vanish, zero is zero."""
    out = reference("silu_mul")(np.array([[1e4, -1e4, 0, 2, 2, 2]], np.float32))
    assert out.tolist() == [[2e4, 0, 0]]


def test_embedding_gathers_and_checks_ids() -> None:
    """Rows in order of the ids, blocks decoded, foreign ids named."""
    table = normal(4, 32)
    np.testing.assert_array_equal(reference("embedding")(table, integers(3, 0)), table[[3, 0]])
    blocks = encode_blocks(table, BLOCK_FORMATS["q4_1"])
    np.testing.assert_array_equal(reference("embedding")(blocks, integers(2)), decode(blocks)[[2]])
    for bad in (4, -1):
        with pytest.raises(IndexRangeError, match=f"id {bad} of token 1, the table has 4 rows"):
            reference("embedding")(table, integers(0, bad))
    assert reference("embedding")(table, integers(0, 99), count(1)).shape == (1, 32)


def test_block_copy_copies_all_layers_and_refuses_order() -> None:
    """Pairs over every layer; a destination in use by another pair is refused."""
    k = normal(3, 4, 1, 16, 2)
    out_k, out_v = reference("block_copy")(integers(0, 2, 1, 3).reshape(2, 2), None, k, k + 1)
    np.testing.assert_array_equal(out_k[:, 2], k[:, 0])
    np.testing.assert_array_equal(out_v[:, 3], k[:, 1] + 1)
    np.testing.assert_array_equal(out_k[:, :2], k[:, :2])
    for pairs in ([0, 1, 1, 2], [0, 1, 2, 1], [1, 1, 0, 3]):
        with pytest.raises(OverlapError, match="block 1"):
            reference("block_copy")(integers(*pairs).reshape(2, 2), None, k, k)
    with pytest.raises(IndexRangeError, match="4 blocks"):
        reference("block_copy")(integers(0, 4).reshape(1, 2), None, k, k)


def test_sample_greedy_ties_and_nan() -> None:
    """The lowest id wins a tie; a NaN row gives -1 and leaves its neighbours alone."""
    logits = np.array([[1, 5, 5], [1, np.nan, 9], [7, 2, 1]], np.float32)
    tokens, logprob = reference("sample")(logits, pack_rows([{}, {}, {}]))
    assert tokens.tolist() == [1, -1, 0]
    assert logprob[0] == pytest.approx(5 - math.log(2 * math.exp(5) + math.e))
    assert np.isnan(logprob[1])


def test_sample_follows_the_inverse_cdf() -> None:
    """Tokens in descending probability, the draw of (seed, index) picks the first past it."""
    probability = np.array([0.1, 0.4, 0.2, 0.3])
    logits = np.log(probability).astype(np.float32)[None]
    for index in range(50):
        draw = uniform(11, index)
        expected = [1, 3, 2, 0][int(np.searchsorted([0.4, 0.7, 0.9], draw, side="right"))]
        row = {"temperature": 1.0, "seed": 11, "token_index": index}
        assert reference("sample")(logits, pack_rows([row]))[0][0] == expected


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        ({"top_k": 2}, {1, 3}),
        ({"top_k": 9}, {0, 1, 2, 3}),
        ({"top_p": 0.65}, {1, 3}),
        ({"top_p": 0.0}, {1}),
        ({"min_p": 0.6}, {1, 3}),
        ({"min_p": 1.0}, {1}),
        ({"top_k": 3, "top_p": 0.7}, {1, 3}),
        ({"temperature": 0.01}, {1}),
        ({"temperature": 100.0, "min_p": 0.5}, {0, 1, 2, 3}),
    ],
)
def test_sample_filters(limits: dict[str, float], kept: set[int]) -> None:
    """Each filter keeps exactly the tokens its definition says; top-p renormalises after top-k."""
    logits = np.log([[0.1, 0.4, 0.2, 0.3]]).astype(np.float32)
    seen = {
        int(
            reference("sample")(
                logits, pack_rows([{"temperature": 1.0, **limits, "token_index": i}])
            )[0][0]
        )
        for i in range(200)
    }
    assert seen == kept


def test_sample_margin_shrinks_at_a_step() -> None:
    """The margin is the distance of the draw to the CDF, infinite for greedy rows."""
    logits = np.zeros((2, 2), np.float32)
    rows = pack_rows([{"temperature": 1.0, "seed": 3}, {}])
    assert margin(logits, rows)[0] == pytest.approx(abs(uniform(3, 0) - 0.5))
    assert margin(logits, rows)[1] == np.inf


def test_kv_cache_shape_is_block_head_token_dim() -> None:
    """The layout serving allocates; other block sizes are refused."""
    assert kv_cache_shape(7, 3, 16, 64) == (7, 3, 16, 64)
    with pytest.raises(ShapeError, match="16 or 32 tokens, got 8"):
        kv_cache_shape(7, 3, 8, 64)
