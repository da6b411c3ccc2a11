import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.kernels.errors import DtypeError, ShapeError
from bedplate.kernels.formats import (
    BLOCK_FORMATS,
    BlockArray,
    bf16_from_f32,
    decode,
    encode_blocks,
    f32_from_bf16,
    format_name,
)


@pytest.mark.parametrize("name", BLOCK_FORMATS)
def test_decode_agrees_with_the_gguf_library(name: str) -> None:
    """Blocks made by the GGUF library decode to its own values, to one fp32 rounding."""
    kind = gguf.GGMLQuantizationType[name.upper()]
    values = np.random.default_rng(1).standard_normal((5, 96)).astype(np.float32)
    raw = gguf.quants.quantize(values, kind)
    ours = decode(BlockArray(BLOCK_FORMATS[name], raw, (5, 96)))
    theirs = gguf.quants.dequantize(raw, kind)
    np.testing.assert_allclose(ours, theirs, rtol=2**-23, atol=1e-7)


@pytest.mark.parametrize("name", BLOCK_FORMATS)
def test_encode_is_within_half_a_step(name: str) -> None:
    """Every encoded value lies within a step of its block: half, or one at Q4_0's clipped end."""
    values = np.random.default_rng(2).standard_normal((4, 64)).astype(np.float32)
    encoded = encode_blocks(values, BLOCK_FORMATS[name])
    blocks = values.reshape(4, 2, 32)
    span = {"q8_0": np.abs(blocks).max(-1) / 127, "q4_0": np.abs(blocks).max(-1) / 8}
    step = span.get(name, np.ptp(blocks, axis=-1) / 15)
    error = np.abs(decode(encoded).reshape(4, 2, 32) - blocks).max(-1)
    assert (error <= (1.01 if name == "q4_0" else 0.52) * step + 2e-3).all()


def test_an_all_zero_block_decodes_to_zero() -> None:
    """A zero scale is legal and gives zeros, not NaN."""
    for block_format in BLOCK_FORMATS.values():
        assert not decode(encode_blocks(np.zeros((1, 32), np.float32), block_format)).any()


def test_block_array_refuses_a_wrong_size() -> None:
    """The raw bytes must be whole rows of whole blocks; the message gives the right size."""
    with pytest.raises(ShapeError, match=r"uint8 \[2, 34\]"):
        BlockArray(BLOCK_FORMATS["q8_0"], np.zeros((2, 33), np.uint8), (2, 32))
    with pytest.raises(ShapeError, match="whole blocks of 32, got 33"):
        BlockArray(BLOCK_FORMATS["q8_0"], np.zeros((2, 34), np.uint8), (2, 33))


@given(st.floats(width=32))
def test_bf16_rounds_to_nearest_even(value: float) -> None:
    """No other bfloat16 is nearer, ties go to the even one, NaN stays NaN, infinity infinity."""
    code = int(bf16_from_f32(np.array([value], np.float32))[0])
    back = float(f32_from_bf16(np.array([code], np.uint16))[0])
    if np.isnan(value):
        assert np.isnan(back)
        return
    if abs(value) >= 3.3961776e38:
        assert back == np.copysign(np.inf, value)
        return
    distance = abs(back - value)
    for neighbour in (code - 1, code + 1):
        if 0 <= neighbour <= 0xFFFF and (neighbour ^ code) < 0x8000:
            other = abs(float(f32_from_bf16(np.array([neighbour], np.uint16))[0]) - value)
            assert distance < other or (distance == other and code % 2 == 0) or np.isnan(other)


def test_unknown_numpy_types_are_refused() -> None:
    """float64 is no tensor format; the message says what is."""
    with pytest.raises(DtypeError, match="float64"):
        format_name(np.zeros(1))
