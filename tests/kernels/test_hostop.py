import numpy as np
import pytest

from bedplate.kernels.api import (
    BLOCK_FORMATS,
    NoImplementationError,
    Packed,
    ShapeError,
    bound,
    compare,
    decode,
    encode_blocks,
    op,
    pack_rows,
    reference,
)
from bedplate.kernels.hostop import _ops

RNG = np.random.default_rng(21)


def normal(*shape: int) -> np.ndarray:
    """Standard normal float32."""
    return RNG.standard_normal(shape).astype(np.float32)


def test_a_call_equals_the_reference_within_its_bound() -> None:
    """The first lines of the guide: arrays in, an array out."""
    x, weight = normal(4, 576), normal(576)
    y = op("rmsnorm")(x, weight, eps=1e-5, backend="cpu")
    assert compare(decode(y), reference("rmsnorm")(x, weight), bound("rmsnorm")(x, weight)).accepted


def test_optional_tensors_and_attributes_go_by_keyword() -> None:
    """count shortens the output, bias is added, bf16 output is asked for by name."""
    a, b, bias = normal(5, 32), normal(32, 8), normal(8)
    count = np.array([3], np.uint32)
    y = op("matmul")(a, b, bias=bias, count=count, out_format="bf16")
    assert y.shape == (3, 8)
    expected = reference("matmul")(a, b, bias, None, count)
    limit = bound("matmul")(a, b, bias, None, count, out_format="bf16")
    assert compare(decode(y), expected, limit).accepted


def test_blocks_tuples_and_in_place_ops() -> None:
    """GGUF weights, an op of two outputs, and one that changes its input."""
    a, w = normal(2, 64), encode_blocks(normal(7, 64), BLOCK_FORMATS["q8_0"])
    y = op("quantized_matmul")(a, w, activation=0)
    assert compare(
        decode(y), reference("quantized_matmul")(a, w), bound("quantized_matmul")(a, w)
    ).accepted
    logits = normal(2, 50)
    tokens, logprob = op("sample")(logits, pack_rows([{}, {}]))
    assert tokens.tolist() == logits.argmax(axis=1).tolist()
    assert (logprob < 0).all()
    x = normal(3, 2, 8)
    before = x.copy()
    turned = op("rope")(x, np.arange(3, dtype=np.int32), np.ones(4, np.float32))
    np.testing.assert_array_equal(x, before)
    assert not np.array_equal(turned, before)


def test_the_numpy_reference_runs_only_when_allowed() -> None:
    """A head of 258 is above every implementation's limit: refused, or computed by numpy."""
    shape = {
        "q": normal(1, 1, 258),
        "k": normal(1, 1, 16, 258),
        "table": np.zeros((1, 1), np.int32),
        "start": np.array([0, 1], np.int32),
        "length": np.array([1], np.int32),
    }
    arrays = (shape["q"], shape["k"], shape["k"], shape["table"], shape["start"], shape["length"])
    with pytest.raises(NoImplementationError, match="generic: paged_attention takes heads"):
        op("paged_attention")(*arrays, scale=1.0)
    out = op("paged_attention")(*arrays, scale=1.0, reference_ok=True)
    np.testing.assert_allclose(out[0, 0], shape["k"][0, 0, 0], rtol=1e-6)


def test_an_input_that_is_none_is_left_out() -> None:
    """As if it had not been named."""
    a, b = normal(2, 8), normal(8, 4)
    np.testing.assert_array_equal(op("matmul")(a, b, bias=None), op("matmul")(a, b))


def test_weights_of_a_matrix_product_are_packed() -> None:
    """The kernels of a level take packed ones alone; the generic one would be slow and silent."""
    operands = op("matmul")._upload(
        _ops("cpu", None), {"a": normal(2, 8), "b": normal(8, 4)}, "f32"
    )
    assert isinstance(operands[1], Packed)
    assert operands[1].shape == (4, 8)


def test_a_wrong_number_of_arrays_is_named() -> None:
    """The message lists what is needed."""
    with pytest.raises(ShapeError, match=r"rmsnorm takes 2 arrays \(x, weight\), got 1"):
        op("rmsnorm")(normal(2, 4))


def test_explain_tells_the_choice_and_the_rejections() -> None:
    """One line per implementation: chosen, later, or refused with the reason."""
    x, weight = normal(2, 8), normal(8)
    assert op("rmsnorm").explain(x, weight, isa="generic").splitlines() == [
        "rmsnorm on cpu:0, generic: chosen"
    ]
    lines = op("softmax").explain(x).splitlines()
    assert lines[-1] == "softmax on cpu:0, generic: chosen"
    assert all("refused: this level has no softmax" in line for line in lines[:-1])
