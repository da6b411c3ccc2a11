"""What the derived bounds are at sizes small enough to work out by hand."""

import numpy as np
import pytest

from bedplate.kernels.api import BLOCK_FORMATS, ShapeError, bound, encode_blocks, reference

U = 2.0**-24
C = 7.0  # deviations


def one(value: float) -> np.ndarray:
    """A 1 by 1 matrix."""
    return np.array([[value]], np.float32)


def test_matmul_of_one_product_counts_bias_and_residual() -> None:
    """One product and two additions: three terms more than none, by the rule terms + 1."""
    assert bound("matmul")(one(2), one(3))[0, 0] == pytest.approx(C * 4**0.5 * U * 6)
    more = bound("matmul")(one(2), one(3), np.array([1.0], np.float32), one(-4))
    assert more[0, 0] == pytest.approx(C * 4**0.5 * U * 11)


@pytest.mark.parametrize(("name", "offset"), [("q8_0", 128), ("q4_0", 8)])
def test_a_quantized_product_adds_what_a_factored_sum_adds(name: str, offset: int) -> None:
    """|code·scale| and the block's offset twice, 32 products and three roundings more."""
    weights = np.zeros((1, 32), np.float32)
    weights[0, 0] = -127 if name == "q8_0" else -8  # so that the scale is 1
    blocks = encode_blocks(weights, BLOCK_FORMATS[name])
    a = np.zeros((1, 32), np.float32)
    a[0, 0] = 2
    expected = C * 37**0.5 * U * 2 * (abs(weights[0, 0]) + 2 * offset)
    assert bound("quantized_matmul")(a, blocks)[0, 0] == pytest.approx(expected, rel=1e-3)


def test_rmsnorm_of_one_element() -> None:
    """eps counts, and half the error of one square with its sum, and six roundings."""
    weight = np.array([2.0], np.float32)
    y = reference("rmsnorm")(one(1e-3), weight, eps=1e-5)
    assert y[0, 0] == pytest.approx(2e-3 / (1e-6 + 1e-5) ** 0.5)
    relative = 0.5 * C * 2**0.5 * U + 6 * U
    assert bound("rmsnorm")(one(1e-3), weight, eps=1e-5)[0, 0] == pytest.approx(y[0, 0] * relative)


def test_reduce_sums_rows() -> None:
    """Over the absolute values, whatever cancels."""
    x = np.array([[1, -2, 3], [4, 5, 6]], np.float32)
    assert reference("reduce")(x).tolist() == [2, 15]
    np.testing.assert_allclose(bound("reduce")(x), C * 4**0.5 * U * np.array([6, 15]))


def test_attention_on_one_key() -> None:
    """Its weight is 1 whatever the score, but a kernel computes it: error of two scores, of an
    exponential and of a sum of one."""
    q = np.array([[[3.0, -1.0]]], np.float32)
    cache = np.zeros((1, 1, 16, 2), np.float32)
    keys, values = cache.copy(), cache.copy()
    keys[0, 0, 0], values[0, 0, 0] = (2, 1), (5, -7)
    table, start, length = (np.array(v, np.int32) for v in ([[0]], [0, 1], [1]))
    arrays = (q, keys, values, table, start, length)
    np.testing.assert_array_equal(reference("paged_attention")(*arrays, scale=0.5), [[[5, -7]]])
    score, magnitude = 0.5 * 5, 0.5 * 7
    score_error = C * 3**0.5 * U * magnitude + 6 * U * score
    relative = 2 * score_error + 2.0**-21 + C * 2**0.5 * U
    allowed = bound("paged_attention")(*arrays, scale=0.5)
    np.testing.assert_allclose(allowed[0, 0], relative * np.array([5, 7]))


def test_rope_errs_by_both_parts_of_a_pair() -> None:
    """Eight roundings of |p| + |q|; rows past the count must not change."""
    x = np.array([[[3.0, -1.0]], [[2.0, 2.0]]], np.float32)
    positions, frequency = np.array([0, 1], np.int32), np.ones(1, np.float32)
    allowed = bound("rope")(x, positions, frequency, np.array([1], np.uint32), scale=0.5)
    np.testing.assert_allclose(allowed[0, 0], 8 * U * 0.5 * 4)
    np.testing.assert_array_equal(allowed[1], 0)


def test_softmax_errs_with_the_distance_from_the_largest() -> None:
    """Relative to each weight: two roundings of the exponent, six more, and the sum's."""
    x = np.array([[2.0, 0.0, -6.0]], np.float32)
    weights = reference("softmax")(x, scale=0.5)
    np.testing.assert_allclose(weights, np.exp([[0, -1, -4]]) / np.exp([0, -1, -4]).sum())
    np.testing.assert_allclose(reference("softmax")(x + 1e4), reference("softmax")(x), rtol=1e-3)
    relative = 2 * U * 0.5 * np.array([0, 2, 8]) + 6 * U + C * 4**0.5 * U
    np.testing.assert_allclose(bound("softmax")(x, scale=0.5), weights * relative)


def test_silu_errs_by_sixteen_roundings() -> None:
    """silu(1)·2."""
    x = np.array([[1.0, 2.0]], np.float32)
    expected = 16 * U * 2 / (1 + np.exp(-1.0))
    np.testing.assert_allclose(bound("silu_mul")(x), [[expected]])
    far = np.array([[-100.0, 1.0]], np.float32)  # where a float32 exponential overflows
    assert bound("silu_mul")(far)[0, 0] > abs(reference("silu_mul")(far)[0, 0]) > 0


def test_a_count_of_all_rows_is_one() -> None:
    """And one more is not."""
    x = np.ones((2, 3), np.float32)
    assert reference("reduce")(x, np.array([2], np.uint32)).tolist() == [3, 3]
    with pytest.raises(ShapeError, match="3"):
        reference("reduce")(x, np.array([3], np.uint32))
