"""Runs one op on device tensors made from host arrays, with poison around every output.

Written once for all implementation levels: arrays are laid out (dense, rows
apart, off alignment), the op is recorded through an `OpSet`, and what it wrote
comes back, after a check that nothing else was written. Outputs start as NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bedplate.hal.api import Batch, Device, DType, Queue, Tensor
from bedplate.kernels.errors import MismatchError
from bedplate.kernels.formats import Array, BlockArray, decode, format_name
from bedplate.kernels.opset import OpSet
from bedplate.kernels.pack import Packed
from bedplate.kernels.registry import get
from bedplate.kernels.tolerance import compare

Host = Any
"""A numpy array, GGUF blocks, or None for an absent tensor."""
GUARD_BYTES = 256
POISON = 0xFF  # an f32 or bf16 of these bytes is NaN, an i32 is -1


@dataclass(frozen=True)
class Layout:
    """How matrices lie: elements between rows beyond their width, and elements before the first."""

    row_gap: int = 0
    offset: int = 0


DENSE = Layout()
STRIDED = Layout(row_gap=32)
MISALIGNED = Layout(row_gap=3, offset=1)


@dataclass
class Rig:
    """A device, its queue and its ops at one level."""

    device: Device
    queue: Queue
    ops: OpSet

    def place(self, array: Host, layout: Layout = DENSE) -> Tensor:
        """A device tensor with the array's elements, poison in every gap."""
        if isinstance(array, BlockArray):
            return self._place(array.data, array.shape, DType[array.format.name.upper()], DENSE)
        dtype = DType[format_name(array).upper()]
        return self._place(array, array.shape, dtype, layout if array.ndim > 1 else DENSE)

    def poisoned(self, shape: Sequence[int], out_format: str, layout: Layout = DENSE) -> Tensor:
        """An output full of poison."""
        dtype = DType[out_format.upper()]
        return self._place(None, tuple(shape), dtype, layout if len(shape) > 1 else DENSE)

    def _place(self, array: Host, shape: tuple[int, ...], dtype: DType, layout: Layout) -> Tensor:
        strides = list(np.cumprod([1, *reversed([max(n, 1) for n in shape[1:]])])[::-1])
        if len(shape) > 1:
            strides[0] += layout.row_gap
        span = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1
        size = dtype.row_bytes(max(int(span), 0) if 0 not in shape else 0)
        start = GUARD_BYTES + layout.offset * dtype.block_bytes
        buffer = self.device.allocate(start + size + GUARD_BYTES)
        buffer.view(np.uint8)[:] = POISON
        tensor = Tensor(buffer, start, shape, dtype, [int(s) for s in strides])
        if array is not None and array.size:
            tensor.view()[...] = array
        return tensor

    def run(
        self,
        name: str,
        inputs: Sequence[Host],
        *,
        out_shapes: Sequence[Sequence[int] | None] = (),
        out_format: str = "f32",
        layout: Layout = DENSE,
        weight: Packed | None = None,
        **attributes: float | int,
    ) -> list[Array]:
        """Readable tensors in schema order; returns the written ones in order.

        `weight` stands for the op's weight tensor. Pure outputs get
        `out_format` (integers for tokens) and the shapes in `out_shapes`.
        """
        schema = get(name).schema
        given, shapes = iter(inputs), iter(out_shapes)
        tensors: list[Tensor | Packed | None] = []
        for rule in schema.tensors:
            if rule.role == "out":
                shape = next(shapes)
                kind = out_format if out_format in rule.formats else rule.formats[0]
                tensors.append(None if shape is None else self.poisoned(shape, kind, layout))
                continue
            array = next(given)
            packed = weight is not None and rule.name in ("b", "w")
            tensors.append(
                weight if packed else None if array is None else self.place(array, layout)
            )
        untouched = [self._snapshot(t) for t in tensors]
        batch = Batch()
        self.ops.record(batch, name, tensors, **attributes)
        self.queue.submit(batch)
        self.queue.synchronize(30_000_000_000)
        written = []
        for rule, tensor, before in zip(schema.tensors, tensors, untouched, strict=True):
            if tensor is None or isinstance(tensor, Packed):
                continue
            assert before is not None
            self._check_untouched(rule.name, tensor, before, rule.role != "in")
            if rule.role != "in":
                written.append(np.array(tensor.view()))
        return written

    def _snapshot(self, tensor: Tensor | Packed | None) -> Array | None:
        return None if not isinstance(tensor, Tensor) else np.array(tensor.buffer.view(np.uint8))

    def _check_untouched(self, name: str, tensor: Tensor, before: Array, written: bool) -> None:
        after = np.array(tensor.buffer.view(np.uint8))
        if written and 0 not in tensor.shape:
            # Mark the elements themselves as free to change, through a view of the copy.
            mask = np.zeros(len(after), np.uint8)
            size = tensor.dtype.storage.itemsize
            flat = mask[tensor.offset_bytes : tensor.offset_bytes + tensor.extent_bytes]
            item = np.lib.stride_tricks.as_strided(
                flat, (*tensor.shape, size), (*(s * size for s in tensor.strides), 1)
            )
            item[...] = 1
            before, after = before[mask == 0], after[mask == 0]
        if not np.array_equal(after, before):
            raise MismatchError(f"{self.ops.isa}: bytes beside {name} were written")

    def check(
        self,
        name: str,
        inputs: Sequence[Host],
        *,
        out_shapes: Sequence[Sequence[int]],
        out_format: str = "f32",
        layout: Layout = DENSE,
        weight: Packed | None = None,
        **attributes: float | int,
    ) -> Array:
        """Run an op of one output, compare the rows in use with the reference, return them.

        Rows past `count` must still be poison. Raises `MismatchError`.
        """
        op = get(name)
        (out,) = self.run(
            name,
            inputs,
            out_shapes=out_shapes,
            out_format=out_format,
            layout=layout,
            weight=weight,
            **attributes,
        )
        expected = op.reference(*inputs, **attributes)
        bound = op.bound(*inputs, out_format=out_format, **attributes)
        got = decode(out)
        rows = len(expected)
        outcome = compare(got[:rows], decode(expected), bound)
        if not outcome.accepted:
            raise MismatchError(f"{name} at {self.ops.isa}: {outcome.message}")
        rest = np.ascontiguousarray(out[rows:])
        if not (rest.view(np.uint8) == POISON).all():
            raise MismatchError(f"{name} at {self.ops.isa}: rows past count were written")
        return got[:rows]
