"""Native packing against the layouts written in numpy, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.panels import block_panels, float_panels

from bedplate.hal.api import DType, open_device
from bedplate.kernels.api import bf16_from_f32, decode, encode_blocks, f32_from_bf16, select
from bedplate.kernels.formats import BLOCK_FORMATS, BlockArray
from bedplate.kernels.select import levels_of

SHAPES = [(16, 32), (1, 32), (17, 64), (48, 288), (33, 320)]


@pytest.fixture(params=["avx2", "avx512", "avx512_bf16"])
def ops(request):  # type: ignore[no-untyped-def]
    """The op set of one tuned level."""
    with open_device("cpu") as device:
        if request.param not in levels_of(device):
            pytest.skip(f"NOT RUN: this processor lacks {request.param}")
        yield select(device, request.param)


def values(shape: tuple[int, int]) -> np.ndarray:
    """Random weights with a few extremes."""
    w = np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)
    w.flat[::7] *= 1e-30
    w.flat[3] = np.inf
    w.flat[5] = np.nan
    return w


@pytest.mark.parametrize("shape", [*SHAPES, (5, 7), (20, 33)])
@pytest.mark.parametrize("compute", [DType.F32, DType.BF16])
def test_floats(ops, shape: tuple[int, int], compute: DType) -> None:  # type: ignore[no-untyped-def]
    """float32 and bf16 rows become the panels that numpy lays out, NaN and odd depths too."""
    w = values(shape)
    packed = ops.pack("matmul", w, compute)
    want = float_panels(w if compute is DType.F32 else bf16_from_f32(w))
    np.testing.assert_array_equal(packed.tensor.view().view(want.dtype), want)
    if compute is DType.BF16:
        again = ops.pack("matmul", bf16_from_f32(w), compute)
        np.testing.assert_array_equal(again.tensor.view(), packed.tensor.view())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", sorted(BLOCK_FORMATS))
def test_blocks(ops, shape: tuple[int, int], kind: str) -> None:  # type: ignore[no-untyped-def]
    """Block rows are regrouped for the quantised product, and dequantised for the dense one."""
    w: BlockArray = encode_blocks(
        np.random.default_rng(1).standard_normal(shape).astype(np.float32), BLOCK_FORMATS[kind]
    )
    packed = ops.pack("quantized_matmul", w.data, DType[kind.upper()], shape)
    np.testing.assert_array_equal(packed.tensor.view(), block_panels(w))
    dense = ops.pack("matmul", w.data, DType.BF16, shape, source=DType[kind.upper()])
    expected = float_panels(bf16_from_f32(decode(w).astype(np.float32)))
    # As values: a code of zero times a negative scale is 0.0 here and -0.0 there.
    np.testing.assert_array_equal(f32_from_bf16(dense.tensor.view()), f32_from_bf16(expected))
