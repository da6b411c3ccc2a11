"""What other systems may import from `kernels`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bedplate.kernels.errors import (
    AttributeValueError,
    DtypeError,
    IndexRangeError,
    IsaError,
    KernelsError,
    NoImplementationError,
    OverlapError,
    ShapeError,
    UnknownOpError,
)
from bedplate.kernels.formats import (
    BLOCK_FORMATS,
    BlockArray,
    Float64Array,
    bf16_from_f32,
    decode,
    encode_blocks,
    f32_from_bf16,
)
from bedplate.kernels.hostop import HostOp, op
from bedplate.kernels.layout import KV_LAYOUT, kv_cache_shape
from bedplate.kernels.opset import OpSet
from bedplate.kernels.oracle import ReferenceOracle
from bedplate.kernels.pack import Packed
from bedplate.kernels.philox import philox4x32
from bedplate.kernels.reference.sample import SAMPLE_ROW, pack_rows
from bedplate.kernels.registry import OPS, get
from bedplate.kernels.select import LEVELS, levels_of, select
from bedplate.kernels.tolerance import Comparison, compare

__all__ = [
    "BLOCK_FORMATS",
    "KV_LAYOUT",
    "LEVELS",
    "OPS",
    "SAMPLE_ROW",
    "AttributeValueError",
    "BlockArray",
    "Comparison",
    "DtypeError",
    "HostOp",
    "IndexRangeError",
    "IsaError",
    "KernelsError",
    "NoImplementationError",
    "OpSet",
    "OverlapError",
    "Packed",
    "ReferenceOracle",
    "ShapeError",
    "UnknownOpError",
    "bf16_from_f32",
    "bound",
    "compare",
    "decode",
    "encode_blocks",
    "f32_from_bf16",
    "kv_cache_shape",
    "levels_of",
    "op",
    "pack_rows",
    "philox4x32",
    "reference",
    "select",
]


def reference(name: str) -> Callable[..., Any]:
    """The numpy reference of an op; raises `UnknownOpError`."""
    return get(name).reference


def bound(name: str) -> Callable[..., Float64Array]:
    """The elementwise error bound of an op, same arguments as its reference and `out_format`."""
    return get(name).bound
