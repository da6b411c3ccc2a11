from collections.abc import Sequence

import numpy as np
import pytest

from bedplate.hal.api import Device, DType, Tensor
from bedplate.kernels.api import OverlapError, ShapeError, select
from bedplate.kernels.call import facts_of, make_call
from bedplate.kernels.registry import get


def at(tensor: Tensor, offset: int, shape: Sequence[int], strides: Sequence[int]) -> Tensor:
    """Another f32 view of a tensor's buffer."""
    return Tensor(tensor.buffer, offset, shape, DType.F32, strides)


def test_neighbours_in_one_buffer_do_not_overlap(device: Device) -> None:
    """Two tensors that touch at one byte boundary are apart; one element more and they are not."""
    whole, weight = device.empty((64,), DType.F32), device.empty((8,), DType.F32)
    x, out = at(whole, 0, (2, 8), (8, 1)), at(whole, 64, (2, 8), (8, 1))
    schema = get("rmsnorm").schema
    make_call(schema, [x, weight, None, out], {"eps": 1e-5})
    make_call(schema, [out, weight, None, x], {"eps": 1e-5})
    with pytest.raises(OverlapError, match="rmsnorm: out is written and reaches into x"):
        make_call(schema, [x, weight, None, at(whole, 60, (2, 8), (8, 1))], {"eps": 1e-5})


def test_in_place_is_the_very_same_tensor(device: Device) -> None:
    """A residual may be the output itself, but not with other strides, and weights never."""
    whole, a = device.empty((64,), DType.F32), device.empty((2, 8), DType.F32)
    b = device.empty((8, 4), DType.F32)
    out = at(whole, 0, (2, 4), (4, 1))
    schema = get("matmul").schema
    make_call(schema, [a, b, None, at(whole, 0, (2, 4), (4, 1)), None, out], {})
    with pytest.raises(OverlapError, match="reaches into residual"):
        make_call(schema, [a, b, None, at(whole, 0, (2, 4), (5, 1)), None, out], {})
    with pytest.raises(OverlapError, match="reaches into b"):
        make_call(schema, [a, at(whole, 0, (8, 4), (4, 1)), None, None, None, out], {})


def test_packed_weights_belong_to_their_op(device: Device) -> None:
    """Facts of packed weights are those of the tensor they stand for; another op refuses them."""
    packed = select(device).pack("matmul", np.ones((4, 8), np.float32), DType.BF16)
    facts = facts_of(packed)
    assert facts is not None
    assert (facts.shape, facts.format) == ((8, 4), "bf16")
    assert packed.bytes >= 4 * 8 * 2
    blocks = np.zeros((8, 34), np.uint8)
    other = select(device).pack("quantized_matmul", blocks, DType.Q8_0, (8, 32))
    facts = facts_of(other)
    assert facts is not None
    assert (facts.shape, facts.format) == ((8, 32), "q8_0")
    ids, out = device.empty((2,), DType.I32), device.empty((2, 32), DType.F32)
    with pytest.raises(ShapeError, match="embedding: weights were packed for quantized_matmul"):
        make_call(get("embedding").schema, [other, ids, None, out], {})
