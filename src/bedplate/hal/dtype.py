"""Element types, and how numpy holds them.

numpy has no bfloat16 and no block formats: a bf16 array is uint16 bits, a
block format is uint8 with the row's bytes as its last dimension.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from bedplate.hal import abi
from bedplate.hal.errors import InvalidArgument


class DType(enum.IntEnum):
    """An element type; the value is the ABI's packed DLPack dtype."""

    F32 = abi.BP_DTYPE_F32
    F16 = abi.BP_DTYPE_F16
    BF16 = abi.BP_DTYPE_BF16
    I8 = abi.BP_DTYPE_I8
    I32 = abi.BP_DTYPE_I32
    I64 = abi.BP_DTYPE_I64
    U8 = abi.BP_DTYPE_U8
    U32 = abi.BP_DTYPE_U32
    U64 = abi.BP_DTYPE_U64
    Q4_0 = abi.BP_DTYPE_Q4_0
    Q4_1 = abi.BP_DTYPE_Q4_1
    Q8_0 = abi.BP_DTYPE_Q8_0

    @property
    def block_elements(self) -> int:
        """Elements that are stored together: 1, or 32."""
        return _BLOCKS[self][0]

    @property
    def block_bytes(self) -> int:
        """Bytes of one element, or of one block."""
        return _BLOCKS[self][1]

    @property
    def is_block(self) -> bool:
        """Whether it is a GGUF block format."""
        return self.block_elements > 1

    @property
    def numpy(self) -> np.dtype[Any] | None:
        """The numpy type that means the same, None where there is none."""
        name = _NUMPY.get(self)
        return None if name is None else np.dtype(name)

    @property
    def storage(self) -> np.dtype[Any]:
        """The numpy type that holds its bits: uint16 for bf16, uint8 for blocks."""
        return self.numpy or np.dtype("u1" if self.is_block else "u2")

    def row_bytes(self, elements: int) -> int:
        """Bytes of `elements` that lie together; InvalidArgument for a broken block."""
        if elements % self.block_elements:
            raise InvalidArgument(
                f"{elements} elements are not whole blocks of {self.name}",
                remedy=f"use a multiple of {self.block_elements}",
            )
        return elements // self.block_elements * self.block_bytes


_BLOCKS: dict[DType, tuple[int, int]] = {
    DType.F32: (1, 4),
    DType.F16: (1, 2),
    DType.BF16: (1, 2),
    DType.I8: (1, 1),
    DType.I32: (1, 4),
    DType.I64: (1, 8),
    DType.U8: (1, 1),
    DType.U32: (1, 4),
    DType.U64: (1, 8),
    DType.Q4_0: (32, 18),
    DType.Q4_1: (32, 20),
    DType.Q8_0: (32, 34),
}
_NUMPY: dict[DType, str] = {
    DType.F32: "f4",
    DType.F16: "f2",
    DType.I8: "i1",
    DType.I32: "i4",
    DType.I64: "i8",
    DType.U8: "u1",
    DType.U32: "u4",
    DType.U64: "u8",
}


def as_dtype(wanted: DType | DTypeLike) -> DType:
    """A DType from itself or from what numpy understands; InvalidArgument otherwise."""
    if isinstance(wanted, DType):
        return wanted
    try:
        name = np.dtype(wanted).str[1:]
    except TypeError as cause:
        raise InvalidArgument(f"{wanted!r} is not a dtype") from cause
    for dtype, known in _NUMPY.items():
        if known == name:
            return dtype
    raise InvalidArgument(
        f"the HAL has no dtype {np.dtype(wanted)}",
        remedy=f"use one of {', '.join(dtype.name for dtype in DType)}",
    )
