"""An op on numpy arrays: upload, choose, run, download.

    y = op("rmsnorm")(x, weight, eps=1e-5, backend="cpu")
    print(op("rmsnorm").explain(x, weight, backend="cpu"))

For people at a prompt and for tests; a program records into batches with
`OpSet`. One device per backend stays open for the life of the process.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bedplate.hal.api import Batch, Device, DType, Tensor, open_device
from bedplate.kernels.call import Operand
from bedplate.kernels.errors import NoImplementationError, ShapeError
from bedplate.kernels.formats import (
    Array,
    BlockArray,
    bf16_from_f32,
    format_name,
)
from bedplate.kernels.op import HostTensor, Op
from bedplate.kernels.opset import OpSet
from bedplate.kernels.registry import get
from bedplate.kernels.select import select

Given = tuple[dict[str, HostTensor], dict[str, float | int]]


class HostOp:
    """One op of the vocabulary, callable on numpy arrays."""

    def __init__(self, op: Op) -> None:
        self._op = op
        self.name = op.name

    def __call__(
        self,
        *arrays: HostTensor,
        backend: str = "cpu",
        isa: str | None = None,
        out_format: str = "f32",
        reference_ok: bool = False,
        **keywords: Any,
    ) -> Any:
        """Run on `backend`; returns the written tensor, or a tuple of them.

        `arrays` are the required readable tensors in the op's order; optional
        tensors and attributes go by keyword. float32, uint16 (bf16), int32 or
        a `BlockArray`. Tensors that the op changes in place come back new, and
        rows past `count` of an output are not returned. Where no implementation
        accepts the call, `reference_ok` allows the numpy reference. Raises a
        `KernelsError` subclass, or the device's error.
        """
        tensors, attributes = self._sort(arrays, keywords)
        ops = _ops(backend, isa)
        operands = self._upload(ops, tensors, out_format)
        try:
            self._run(ops, operands, attributes)
        except NoImplementationError:
            if not reference_ok:
                raise
            return self._reference(tensors, attributes, out_format)
        rows = tensors.get("count")
        return _single(self._download(operands, None if rows is None else int(np.asarray(rows)[0])))

    def explain(
        self,
        *arrays: HostTensor,
        backend: str = "cpu",
        isa: str | None = None,
        out_format: str = "f32",
        **keywords: Any,
    ) -> str:
        """The choice for this call and why the others lost; nothing runs."""
        tensors, attributes = self._sort(arrays, keywords)
        ops = _ops(backend, isa)
        return ops.explain(self.name, self._upload(ops, tensors, out_format), **attributes)

    def _sort(self, arrays: Sequence[HostTensor], keywords: Mapping[str, Any]) -> Given:
        needed = [r.name for r in self._op.schema.inputs if not r.optional]
        optional = {r.name for r in self._op.schema.inputs if r.optional}
        if len(arrays) != len(needed):
            raise ShapeError(
                f"{self.name} takes {len(needed)} arrays ({', '.join(needed)}), got {len(arrays)}"
            )
        tensors = dict(zip(needed, arrays, strict=True))
        tensors |= {k: v for k, v in keywords.items() if k in optional and v is not None}
        return tensors, {k: v for k, v in keywords.items() if k not in optional}

    def _upload(
        self, ops: OpSet, tensors: Mapping[str, HostTensor], out_format: str
    ) -> list[Operand]:
        operands: list[Operand] = []
        shapes = _OUTPUTS.get(self.name, _OUTPUTS["rowwise"])(tensors)
        for rule in self._op.schema.tensors:
            if rule.role == "out":
                kind = out_format if out_format in rule.formats else rule.formats[0]
                operands.append(ops.device.empty(shapes[rule.name], DType[kind.upper()]))
            elif rule.name not in tensors:
                operands.append(None)
            else:
                operands.append(self._operand(ops, rule.name, tensors[rule.name]))
        return operands

    def _operand(self, ops: OpSet, name: str, array: HostTensor) -> Operand:
        dtype = DType[format_name(array).upper()]
        if self.name == "matmul" and name == "b" and not isinstance(array, BlockArray):
            return ops.pack("matmul", np.ascontiguousarray(array.T), dtype)
        if self.name == "quantized_matmul" and isinstance(array, BlockArray):
            return ops.pack("quantized_matmul", array.data, dtype, array.shape)
        return _place(ops.device, array, dtype)

    def _run(
        self, ops: OpSet, operands: Sequence[Operand], attributes: Mapping[str, float | int]
    ) -> None:
        batch = Batch()
        ops.record(batch, self.name, operands, **attributes)
        with ops.device.queue() as queue:
            queue.submit(batch)
            queue.synchronize()

    def _download(self, operands: Sequence[Operand], rows: int | None) -> list[Array]:
        written = []
        for rule, operand in zip(self._op.schema.tensors, operands, strict=True):
            if rule.role == "in" or not isinstance(operand, Tensor):
                continue
            array = np.array(operand.view())
            written.append(array[:rows] if rule.role == "out" and rows is not None else array)
        return written

    def _reference(
        self,
        tensors: Mapping[str, HostTensor],
        attributes: Mapping[str, float | int],
        out_format: str,
    ) -> Any:
        inputs = [tensors.get(rule.name) for rule in self._op.schema.inputs]
        outputs = self._op.outputs(inputs, dict(attributes))
        return _single([_narrowed(array, out_format) for array in outputs])


def op(name: str) -> HostOp:
    """The op called `name` on numpy arrays; raises `UnknownOpError`."""
    return HostOp(get(name))


@functools.cache
def _ops(backend: str, isa: str | None) -> OpSet:
    return select(_device(backend), isa)


@functools.cache
def _device(backend: str) -> Device:
    return open_device(backend)


def _place(device: Device, array: HostTensor, dtype: DType) -> Tensor:
    tensor = device.empty(array.shape, dtype)
    device.write(tensor, array.data if isinstance(array, BlockArray) else array)
    return tensor


def _narrowed(array: Array, out_format: str) -> Array:
    if array.dtype != np.float64:
        return array
    return bf16_from_f32(array) if out_format == "bf16" else array.astype(np.float32)


def _single(written: list[Array]) -> Any:
    return written[0] if len(written) == 1 else tuple(written)


Shapes = dict[str, tuple[int, ...]]
_OUTPUTS: dict[str, Callable[[Mapping[str, Any]], Shapes]] = {
    "rowwise": lambda t: {"out": t["x"].shape} if "x" in t else {},
    "embedding": lambda t: {"out": (t["ids"].shape[0], t["table"].shape[1])},
    "matmul": lambda t: {"out": (t["a"].shape[0], t["b"].shape[1])},
    "quantized_matmul": lambda t: {"out": (t["a"].shape[0], t["w"].shape[0])},
    "paged_attention": lambda t: {"out": t["q"].shape},
    "silu_mul": lambda t: {"out": (t["gate_up"].shape[0], t["gate_up"].shape[1] // 2)},
    "reduce": lambda t: {"out": t["x"].shape[:1]},
    "sample": lambda t: {"tokens": t["logits"].shape[:1], "logprob": t["logits"].shape[:1]},
}
"""Shapes of the pure outputs, from the readable tensors."""
