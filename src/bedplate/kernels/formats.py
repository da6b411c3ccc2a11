"""The number formats a tensor may hold, and their exact values.

f32 is float32. bf16 travels as uint16 (numpy has no bfloat16). The GGUF block
formats hold 32 elements behind one or two float16 scales; a matrix of them is
a `BlockArray` whose rows are whole blocks. Decoding is exact in fp64, so a
reference can start from the very numbers an implementation reads. Encoding is
round to nearest even and is for tests and for packing, not for model quality.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bedplate.kernels.errors import DtypeError, ShapeError

Float64Array = npt.NDArray[np.float64]
Array = npt.NDArray[Any]

BLOCK_ELEMENTS = 32
"""Elements of one GGUF block. Source: GGUF specification, Q4_0, Q4_1 and Q8_0."""


@dataclass(frozen=True)
class BlockFormat:
    """One GGUF block format of 32 elements.

    `zero_point` is subtracted from the stored unsigned code; `has_minimum` says
    that a second float16 is added instead.
    """

    name: str
    block_bytes: int
    bits: int
    zero_point: int
    has_minimum: bool


Q8_0 = BlockFormat("q8_0", 34, 8, 0, False)
Q4_0 = BlockFormat("q4_0", 18, 4, 8, False)
Q4_1 = BlockFormat("q4_1", 20, 4, 0, True)
BLOCK_FORMATS: dict[str, BlockFormat] = {f.name: f for f in (Q8_0, Q4_0, Q4_1)}


@dataclass(frozen=True)
class BlockArray:
    """A matrix of `shape` (rows, columns) held as GGUF blocks in uint8 [rows, row_bytes]."""

    format: BlockFormat
    data: npt.NDArray[np.uint8]
    shape: tuple[int, int]

    def __post_init__(self) -> None:
        rows, columns = self.shape
        if columns % BLOCK_ELEMENTS:
            raise ShapeError(
                f"{self.format.name} rows hold whole blocks of 32, got {columns} columns"
            )
        row_bytes = columns // BLOCK_ELEMENTS * self.format.block_bytes
        if self.data.dtype != np.uint8 or self.data.shape != (rows, row_bytes):
            raise ShapeError(
                f"a {self.format.name} matrix {rows}x{columns} is uint8 [{rows}, {row_bytes}],"
                f" got {self.data.dtype} {list(self.data.shape)}"
            )


def bf16_from_f32(values: Array) -> npt.NDArray[np.uint16]:
    """Round float32 to bfloat16 (nearest, ties to even); NaN stays a quiet NaN."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
    is_nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    return np.where(is_nan, quiet, rounded).astype(np.uint16)


def f32_from_bf16(values: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """Widen bfloat16 held as uint16; exact."""
    return (values.astype(np.uint32) << np.uint32(16)).view(np.float32)


def format_name(array: Array | BlockArray) -> str:
    """Name of the format an array holds: f32, bf16, i32, u32, u8, i64, q8_0, q4_0 or q4_1."""
    if isinstance(array, BlockArray):
        return array.format.name
    names = {
        "float32": "f32",
        "uint16": "bf16",
        "int32": "i32",
        "uint32": "u32",
        "uint8": "u8",
        "int64": "i64",
    }
    try:
        return names[array.dtype.name]
    except KeyError:
        raise DtypeError(
            f"no tensor format for numpy {array.dtype}; use float32, uint16 (bf16) or int32"
        ) from None


def decode(array: Array | BlockArray) -> Float64Array:
    """The exact values in fp64, in the array's logical shape."""
    if isinstance(array, BlockArray):
        return _decode_blocks(array)
    if array.dtype == np.uint16:
        return f32_from_bf16(array).astype(np.float64)
    return array.astype(np.float64)


def _decode_blocks(array: BlockArray) -> Float64Array:
    rows, columns = array.shape
    blocks = array.data.reshape(rows, columns // BLOCK_ELEMENTS, array.format.block_bytes)
    scale = blocks[..., 0:2].copy().view(np.float16).astype(np.float64)
    if array.format.bits == 8:
        codes = blocks[..., 2:].view(np.int8).astype(np.float64)
        return (codes * scale).reshape(rows, columns)
    packed = blocks[..., array.format.block_bytes - 16 :]
    codes = np.concatenate([packed & 0x0F, packed >> 4], axis=-1).astype(np.float64)
    if array.format.has_minimum:
        minimum = blocks[..., 2:4].copy().view(np.float16).astype(np.float64)
        return (codes * scale + minimum).reshape(rows, columns)
    return ((codes - array.format.zero_point) * scale).reshape(rows, columns)


def encode_blocks(values: Array, block_format: BlockFormat) -> BlockArray:
    """Quantise float [rows, columns] into blocks: the scale spans the block's extremes.

    Q8_0 maps the largest magnitude to 127, Q4_0 the signed extreme to -8, Q4_1
    the range to 0..15. Source: GGUF specification.
    """
    rows, columns = values.shape
    x = values.astype(np.float64).reshape(rows, columns // BLOCK_ELEMENTS, BLOCK_ELEMENTS)
    minimum = np.zeros(x.shape[:2])
    if block_format.bits == 8:
        scale = np.abs(x).max(axis=-1) / 127
        low, high = -127, 127
    elif block_format.has_minimum:
        minimum = x.min(axis=-1).astype(np.float16).astype(np.float64)
        scale = (x.max(axis=-1) - minimum) / 15
        low, high = 0, 15
    else:
        extreme = np.take_along_axis(x, np.abs(x).argmax(axis=-1)[..., None], axis=-1)[..., 0]
        scale = extreme / -8
        low, high = -8, 7
    half = scale.astype(np.float16)
    divisor = np.where(half == 0, 1, half.astype(np.float64))
    codes = np.clip(np.rint((x - minimum[..., None]) / divisor[..., None]), low, high)
    out = np.empty((*x.shape[:2], block_format.block_bytes), dtype=np.uint8)
    out[..., 0:2] = half[..., None].view(np.uint8)
    if block_format.bits == 8:
        out[..., 2:] = codes.astype(np.int8).view(np.uint8)
    else:
        if block_format.has_minimum:
            out[..., 2:4] = minimum.astype(np.float16)[..., None].view(np.uint8)
        unsigned = (codes + block_format.zero_point).astype(np.uint8)
        out[..., block_format.block_bytes - 16 :] = unsigned[..., :16] | (unsigned[..., 16:] << 4)
    return BlockArray(block_format, out.reshape(rows, -1), (rows, columns))
