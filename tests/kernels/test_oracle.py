import numpy as np
import pytest

from bedplate.core.oracle import OpOracle
from bedplate.kernels.api import (
    BLOCK_FORMATS,
    ReferenceOracle,
    UnknownOpError,
    bound,
    encode_blocks,
    pack_rows,
    reference,
)

RNG = np.random.default_rng(31)
ORACLE: OpOracle = ReferenceOracle()


def normal(*shape: int) -> np.ndarray:
    """Standard normal float32."""
    return RNG.standard_normal(shape).astype(np.float32)


def test_one_output_comes_as_a_sequence_of_one() -> None:
    """The reference and its bound, in step."""
    arrays = [normal(2, 8), normal(8), None]
    (out,) = ORACLE.reference("rmsnorm", arrays, {"eps": 1e-5})
    (limit,) = ORACLE.bound("rmsnorm", arrays, {"eps": 1e-5})
    np.testing.assert_array_equal(out, reference("rmsnorm")(*arrays, eps=1e-5))
    np.testing.assert_array_equal(limit, bound("rmsnorm")(*arrays, eps=1e-5))


@pytest.mark.parametrize("kind", BLOCK_FORMATS)
def test_block_rows_cross_as_bytes(kind: str) -> None:
    """The format follows from the bytes of a row and the activations' width."""
    a, w = normal(2, 96), encode_blocks(normal(5, 96), BLOCK_FORMATS[kind])
    (out,) = ORACLE.reference("quantized_matmul", [a, w.data, None, None, None], {"activation": 1})
    np.testing.assert_array_equal(out, reference("quantized_matmul")(a, w))


def test_exact_outputs_have_no_room() -> None:
    """Tokens are exact, the log-probability beside them is not; caches are exact."""
    arrays = [normal(2, 50), pack_rows([{}, {}]), None]
    tokens, logprob = ORACLE.bound("sample", arrays, {})
    assert not np.any(tokens)
    assert (logprob > 0).all()
    cache = normal(1, 1, 16, 4)
    k = normal(1, 1, 4)
    written = ORACLE.bound("kv_write", [k, k, np.zeros(1, np.int32), None, cache, cache], {})
    assert len(written) == 2
    assert not any(np.any(limit) for limit in written)


def test_an_unknown_op_is_named() -> None:
    """The suite reports it as NOT RUN with this sentence."""
    with pytest.raises(UnknownOpError, match="no op is called 'conv3d'"):
        ORACLE.reference("conv3d", [], {})
