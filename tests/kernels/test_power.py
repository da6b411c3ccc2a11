import numpy as np

from bedplate.kernels.api import BLOCK_FORMATS, bf16_from_f32, bound, encode_blocks, reference
from bedplate.kernels.formats import Float64Array
from bedplate.kernels.power import accepted_mistakes, mistakes
from bedplate.kernels.tolerance import accumulated

RNG = np.random.default_rng(4)


def normal(*shape: int) -> np.ndarray:
    """Standard normal float32."""
    return RNG.standard_normal(shape).astype(np.float32)


def test_matmul_bounds_reject_every_mistake() -> None:
    """f32 and bf16 inputs, f32 and bf16 outputs, model-sized K: no mistake passes."""
    for cast in (np.asarray, bf16_from_f32):
        a, b = normal(6, 576), normal(576, 40)
        cut = a.copy()
        cut[:, -8:] = 0
        for out_format in ("f32", "bf16"):
            assert not accepted_mistakes(
                reference("matmul")(cast(a), cast(b)),
                bound("matmul")(cast(a), cast(b), out_format=out_format),
                lambda cast=cast, cut=cut, b=b: reference("matmul")(cast(cut), cast(b)),
            )


def test_a_wrong_tile_is_half_of_a_row() -> None:
    """The rest stays right, down to rows of two: a mistake that only a whole check sees."""
    for width in (2, 3, 8):
        row = np.arange(1.0, width + 1)[None]
        tile = dict(mistakes(row))["wrong tile"]
        assert (tile[:, : width // 2] != row[:, : width // 2]).all()
        np.testing.assert_array_equal(tile[:, width // 2 :], row[:, width // 2 :])


def test_quantized_matmul_bounds_reject_every_mistake() -> None:
    """Also in the int8 class, whose bound is the widest, for one dropped block of 32."""
    a = normal(8, 1536)
    cut = a.copy()
    cut[:, -32:] = 0
    for block_format in BLOCK_FORMATS.values():
        w = encode_blocks(normal(64, 1536), block_format)
        for activation in (0, 1):
            assert not accepted_mistakes(
                reference("quantized_matmul")(a, w),
                bound("quantized_matmul")(a, w, activation=activation),
                lambda w=w: reference("quantized_matmul")(cut, w),
            )


def test_rowwise_bounds_reject_every_mistake() -> None:
    """rmsnorm and silu_mul, f32 and bf16 outputs."""
    x, weight = normal(4, 576), normal(576)
    for out_format in ("f32", "bf16"):
        assert not accepted_mistakes(
            reference("rmsnorm")(x, weight), bound("rmsnorm")(x, weight, out_format=out_format)
        )
        assert not accepted_mistakes(
            reference("silu_mul")(x), bound("silu_mul")(x, out_format=out_format)
        )


def test_a_tiny_softmax_is_not_lost_in_an_absolute_tolerance() -> None:
    """393,216 equal keys: every weight is 2.5e-6, and zeros are still rejected.

    The report: KernelBench 165, where an absolute 1e-2 accepted a kernel of zeros.
    """
    keys = 393_216
    magnitude = np.full((1, 1), 1 / keys)
    expected: Float64Array = magnitude.copy()
    assert accepted_mistakes(expected, np.full((1, 1), 1e-2)) != []
    from_bound = accumulated(keys, magnitude)
    assert "zeros" not in accepted_mistakes(expected, from_bound)


def test_attention_bounds_reject_every_mistake() -> None:
    """One sequence of 40 tokens; the dropped slice is the last block of the cache."""
    q, k, v = normal(40, 2, 64), normal(3, 1, 16, 64), normal(3, 1, 16, 64)
    shape = {
        "block_table": np.array([[2, 0, 1]], np.int32),
        "query_start": np.array([0, 40], np.int32),
        "context_length": np.array([40], np.int32),
        "scale": 0.125,
    }
    cut = v.copy()
    cut[1] = 0
    assert not accepted_mistakes(
        reference("paged_attention")(q, k, v, **shape),
        bound("paged_attention")(q, k, v, **shape),
        lambda: reference("paged_attention")(q, k, cut, **shape),
    )
