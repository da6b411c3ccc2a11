"""One linear layer, y = x Wᵀ (+ residual), packed for its number format.

Several weights that read the same input are stacked into one, so that a layer
needs four products, not seven. Weights of unlike formats cannot be stacked; each
then writes its own columns of the output.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bedplate.hal.api import Batch, DType, Tensor
from bedplate.kernels.api import OpSet, Packed
from bedplate.serving.modelfile import RawTensor, as_float32
from bedplate.serving.models.base import Precision

_QUANTIZED = (DType.Q4_0, DType.Q4_1, DType.Q8_0)


def _stack(parts: Sequence[RawTensor]) -> list[RawTensor]:
    """`parts` with equal formats joined along their rows."""
    if len({part.dtype for part in parts}) != 1:
        return list(parts)
    rows = sum(part.shape[0] for part in parts)
    data = parts[0].data if len(parts) == 1 else np.concatenate([part.data for part in parts])
    return [RawTensor(parts[0].name, parts[0].dtype, (rows, parts[0].shape[1]), data)]


class Linear:
    """Packed weights of one product; output columns are the stacked parts' rows."""

    def __init__(self, ops: OpSet, parts: Sequence[RawTensor], precision: Precision) -> None:
        self._ops = ops
        self.inputs = parts[0].shape[1]
        self._packed: list[tuple[int, Packed]] = []
        column = 0
        for part in _stack(parts):
            self._packed.append((column, _pack(ops, part, precision)))
            column += part.shape[0]

    def record(
        self,
        batch: Batch,
        x: Tensor,
        out: Tensor,
        count: Tensor,
        *,
        residual: Tensor | None = None,
    ) -> None:
        """Append the product for the rows of `x` [T, inputs] into `out` [T, outputs]."""
        for column, packed in self._packed:
            width = packed.shape[0]
            attributes = {"activation": 1} if packed.op == "quantized_matmul" else {}
            added = _columns(residual, column, width)
            into = _columns(out, column, width)
            self._ops.record(batch, packed.op, [x, packed, None, added, count, into], **attributes)


def _columns(tensor: Tensor | None, first: int, width: int) -> Tensor | None:
    if tensor is None or (first == 0 and width == tensor.shape[1]):
        return tensor
    stride = tensor.strides[0] if tensor.strides else tensor.shape[1]
    return Tensor(
        tensor.buffer,
        tensor.offset_bytes + first * tensor.dtype.block_bytes,
        (tensor.shape[0], width),
        tensor.dtype,
        (stride, 1),
    )


def _pack(ops: OpSet, part: RawTensor, precision: Precision) -> Packed:
    rows, columns = part.shape
    if precision is Precision.QUANTIZED and part.dtype in _QUANTIZED:
        return ops.pack("quantized_matmul", part.data, part.dtype, (rows, columns))
    compute = DType.F32 if precision is Precision.FLOAT32 else DType.BF16
    if part.dtype.is_block:
        return ops.pack("matmul", part.data, compute, (rows, columns), source=part.dtype)
    if part.dtype is DType.BF16 and compute is DType.BF16:
        return ops.pack("matmul", part.data.view(np.uint16), compute, (rows, columns))
    return ops.pack("matmul", as_float32(part), compute, (rows, columns))
