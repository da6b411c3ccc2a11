"""Ops on one device: choosing an implementation, packing weights, recording commands.

Choosing is pure and remembered: the first implementation, fastest first, that
accepts the shapes. One scratch buffer serves all recorded commands, so the
batches of one `OpSet` run on one queue, or never at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bedplate.hal.api import Batch, Buffer, Device, DType
from bedplate.kernels.call import Call, Operand, make_call
from bedplate.kernels.errors import DtypeError, NoImplementationError, ShapeError
from bedplate.kernels.formats import (
    BLOCK_FORMATS,
    Array,
    BlockArray,
    bf16_from_f32,
    f32_from_bf16,
)
from bedplate.kernels.implementation import Implementation
from bedplate.kernels.pack import Packed
from bedplate.kernels.registry import get


class OpSet:
    """The ops of one device; made by `select`. `isa` names the level in use."""

    def __init__(self, device: Device, isa: str, implementations: Sequence[Implementation]) -> None:
        self.device = device
        self.isa = isa
        self._implementations = tuple(implementations)
        self._scratch: Buffer | None = None

    def pack(
        self,
        op: str,
        weight: Array,
        dtype: DType,
        shape: tuple[int, int] | None = None,
        *,
        source: DType | None = None,
    ) -> Packed:
        """Upload weights [N,K] in the layout that the fastest implementation reads.

        `op` is "matmul" (`weight` float32, or uint16 bits of bf16; converted to
        `dtype` F32 or BF16) or "quantized_matmul" (`weight` uint8 GGUF rows in
        any shape, `dtype` Q8_0, Q4_0 or Q4_1, and `shape` in elements). With a
        block format as `source`, "matmul" takes such GGUF rows too and
        dequantises them. Waits. Raises `UnknownOpError`, `DtypeError`, `ShapeError`.
        """
        get(op)
        if op not in ("matmul", "quantized_matmul"):
            raise ShapeError(f"{op} has no weights to pack; matmul and quantized_matmul have")
        values: Array | BlockArray
        if op == "quantized_matmul":
            values = _as_blocks(weight, dtype, shape)
        elif source is not None and source.is_block:
            if dtype not in (DType.F32, DType.BF16):
                raise DtypeError(f"matmul: cannot pack as {dtype.name}, accepted: F32 or BF16")
            values = _as_blocks(weight, source, shape)
        else:
            values = _as_floats(weight, dtype, shape)
        return self._implementations[0].pack(op, values, dtype)

    def record(
        self, batch: Batch, op: str, tensors: Sequence[Operand], **attributes: float | int
    ) -> None:
        """Append an op to a batch. `tensors` in the op's order, None for absent ones.

        Allocates only when scratch memory must grow. Raises a `KernelsError`
        subclass naming the op and the value; the batch is then unchanged.
        """
        call = make_call(get(op).schema, tensors, attributes)
        chosen = self._choose(call)
        chosen.record(batch, call, self._workspace(chosen.workspace_bytes(call)))

    def workspace_bytes(
        self, op: str, tensors: Sequence[Operand], **attributes: float | int
    ) -> int:
        """Scratch bytes that recording this call uses, out of the set's own buffer."""
        call = make_call(get(op).schema, tensors, attributes)
        return self._choose(call).workspace_bytes(call)

    def explain(self, op: str, tensors: Sequence[Operand], **attributes: float | int) -> str:
        """The choice for this call and why the others lost, one line each."""
        call = make_call(get(op).schema, tensors, attributes)
        lines, chosen = [], False
        for implementation in self._implementations:
            refusal = implementation.refuses(call)
            if refusal is not None:
                verdict = f"refused: {refusal}"
            elif chosen:
                verdict = "accepts, but comes later"
            else:
                verdict, chosen = "chosen", True
            lines.append(f"{op} on {self.device.id}, {implementation.name}: {verdict}")
        return "\n".join(lines)

    def _choose(self, call: Call) -> Implementation:
        reasons = []
        for implementation in self._implementations:
            refusal = implementation.refuses(call)
            if refusal is None:
                return implementation
            reasons.append(f"{implementation.name}: {refusal}")
        raise NoImplementationError(
            f"nothing on {self.device.id} runs this {call.schema.name}: {'; '.join(reasons)}"
        )

    def _workspace(self, needed: int) -> Buffer | None:
        if needed == 0:
            return None
        if self._scratch is None or self._scratch.bytes < needed:
            # Batches recorded before keep the smaller one alive.
            self._scratch = self.device.allocate(needed)
        return self._scratch


def _as_blocks(weight: Array, dtype: DType, shape: tuple[int, int] | None) -> BlockArray:
    name = dtype.name.lower()
    if name not in BLOCK_FORMATS:
        known = ", ".join(BLOCK_FORMATS)
        raise DtypeError(f"quantized_matmul: weights are {name}, accepted: {known}")
    if shape is None:
        raise ShapeError("quantized_matmul: packing needs the shape in elements, (N, K)")
    raw: npt.NDArray[np.uint8] = np.ascontiguousarray(weight).view(np.uint8)
    if shape[0] < 1 or raw.size % shape[0]:
        raise ShapeError(f"quantized_matmul: {raw.size} bytes are no {shape[0]} rows of {name}")
    return BlockArray(BLOCK_FORMATS[name], raw.reshape(shape[0], -1), shape)


def _as_floats(weight: Array, dtype: DType, shape: tuple[int, int] | None) -> Array:
    if shape is not None:
        if weight.size != shape[0] * shape[1]:
            raise ShapeError(f"matmul: weights of {weight.size} elements are no {list(shape)}")
        weight = weight.reshape(shape)
    if weight.ndim != 2:
        raise ShapeError(f"matmul: weights have rank {weight.ndim}, expected [N, K]")
    if weight.dtype not in (np.float32, np.uint16) or dtype not in (DType.F32, DType.BF16):
        raise DtypeError(
            f"matmul: cannot pack numpy {weight.dtype} as {dtype.name},"
            " accepted: float32 or uint16 (bf16) as F32 or BF16"
        )
    if dtype == DType.BF16:
        return weight if weight.dtype == np.uint16 else bf16_from_f32(weight)
    return weight if weight.dtype == np.float32 else f32_from_bf16(weight)
