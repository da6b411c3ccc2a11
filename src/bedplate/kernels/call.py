"""One checked use of an op on device tensors: what implementations judge and record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bedplate.hal.api import Tensor
from bedplate.kernels.errors import OverlapError, ShapeError
from bedplate.kernels.pack import Packed
from bedplate.kernels.schema import Schema, TensorFacts

Operand = Tensor | Packed | None


@dataclass(frozen=True)
class Call:
    """An op's schema with tensors, the extents they bind and complete attributes."""

    schema: Schema
    operands: tuple[Operand, ...]
    extents: dict[str, int]
    attributes: dict[str, float | int]

    def tensor(self, name: str) -> Tensor | None:
        """The tensor in the place `name`; the device tensor of packed weights."""
        operand = self.operands[self.schema.index(name)]
        return operand.tensor if isinstance(operand, Packed) else operand

    def needed(self, name: str) -> Tensor:
        """The tensor in the place `name`, which the schema requires."""
        tensor = self.tensor(name)
        assert tensor is not None, name
        return tensor

    def packed(self, name: str) -> Packed | None:
        """The packed weights in the place `name`, None for a plain tensor."""
        operand = self.operands[self.schema.index(name)]
        return operand if isinstance(operand, Packed) else None


def format_of(tensor: Tensor) -> str:
    """Format name of a device tensor, as in the schemas."""
    return tensor.dtype.name.lower()


def facts_of(operand: Operand) -> TensorFacts | None:
    """What the schema looks at."""
    if operand is None:
        return None
    if isinstance(operand, Packed):
        n, k = operand.shape
        return TensorFacts((k, n) if operand.op == "matmul" else (n, k), operand.format)
    return TensorFacts(operand.shape, format_of(operand))


def make_call(
    schema: Schema, operands: Sequence[Operand], attributes: Mapping[str, float | int]
) -> Call:
    """Check tensors and attributes against the schema.

    Raises `ShapeError`, `DtypeError`, `AttributeValueError`, and `OverlapError`
    for a written tensor that reaches into another one.
    """
    extents = schema.bind([facts_of(o) for o in operands])
    for operand in operands:
        if isinstance(operand, Packed) and operand.op != schema.name:
            raise ShapeError(f"{schema.name}: weights were packed for {operand.op}")
    call = Call(schema, tuple(operands), extents, schema.attribute_values(attributes))
    _check_overlap(call)
    return call


def _check_overlap(call: Call) -> None:
    for out_rule in call.schema.outputs:
        out = call.tensor(out_rule.name)
        if out is None:
            continue
        for rule in call.schema.tensors:
            other = call.tensor(rule.name)
            if other is None or rule is out_rule or not _intersect(out, other):
                continue
            if rule.name in ("residual", "x") and _same_place(out, other):
                continue
            raise OverlapError(
                f"{call.schema.name}: {out_rule.name} is written and reaches into {rule.name}"
            )


def _intersect(one: Tensor, other: Tensor) -> bool:
    if one.buffer is not other.buffer:
        return False
    one_end = one.offset_bytes + one.extent_bytes
    return one.offset_bytes < other.offset_bytes + other.extent_bytes and (
        other.offset_bytes < one_end
    )


def _same_place(one: Tensor, other: Tensor) -> bool:
    return (one.offset_bytes, one.dtype, one.strides) == (
        other.offset_bytes,
        other.dtype,
        other.strides,
    )
