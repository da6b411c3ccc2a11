"""The `generic` level: the backend's own `bp.ops.1`, portable loops on `cpu`.

Plans are made once per shape and kept; a recorded batch keeps its own alive.
"""

from __future__ import annotations

import numpy as np

from bedplate.hal.api import Batch, Buffer, Device, DType, HalError, OpPlan, Tensor, pack_attributes
from bedplate.kernels.call import Call, Operand
from bedplate.kernels.formats import Array, BlockArray, bf16_from_f32, decode
from bedplate.kernels.implementation import TensorSource
from bedplate.kernels.pack import Packed

PlanKey = tuple[object, ...]


class Generic:
    """Every op through `bp.ops.1` of a device."""

    name = "generic"

    def __init__(self, device: Device, weights: TensorSource) -> None:
        self._device, self._weights = device, weights
        self._plans: dict[PlanKey, OpPlan | str] = {}

    def refuses(self, call: Call) -> str | None:
        """The backend's own sentence when it does not plan these shapes."""
        for operand in call.operands:
            if isinstance(operand, Packed) and operand.layout != "rows":
                return f"the weights are packed as {operand.layout}"
        plan = self._plan(call)
        return plan if isinstance(plan, str) else None

    def workspace_bytes(self, call: Call) -> int:
        """What the plan asks for."""
        plan = self._plan(call)
        return 0 if isinstance(plan, str) else plan.workspace_bytes

    def record(self, batch: Batch, call: Call, workspace: Buffer | None) -> None:
        """One op command."""
        plan = self._plan(call)
        assert isinstance(plan, OpPlan), plan
        needed = workspace if plan.workspace_bytes else None
        batch.op(plan, [_as_tensor(o) for o in call.operands], needed)

    def pack(self, op: str, weight: Array | BlockArray, dtype: DType) -> Packed:
        """Row-major, as given; blocks for a float product are decoded."""
        if isinstance(weight, BlockArray) and op == "matmul":
            floats = decode(weight).astype(np.float32)
            weight = bf16_from_f32(floats) if dtype == DType.BF16 else floats
        rows = weight.data if isinstance(weight, BlockArray) else np.ascontiguousarray(weight)
        n, k = weight.shape
        tensor = self._weights.empty((n, k), dtype)
        self._device.write(tensor, rows)
        return Packed(op, dtype.name.lower(), (n, k), "rows", tensor)

    def _plan(self, call: Call) -> OpPlan | str:
        key = _key(call)
        if key not in self._plans:
            attributes = pack_attributes(call.schema.name, **call.attributes)
            tensors = [_as_tensor(o) for o in call.operands]
            try:
                self._plans[key] = self._device.plan_op(call.schema.name, tensors, attributes)
            except HalError as refusal:
                self._plans[key] = str(refusal)
        return self._plans[key]


def _as_tensor(operand: Operand) -> Tensor | None:
    if not isinstance(operand, Packed):
        return operand
    if operand.op != "matmul":
        return operand.tensor
    n, k = operand.shape
    weights = operand.tensor
    return Tensor(weights.buffer, weights.offset_bytes, (k, n), weights.dtype, (1, k))


def _key(call: Call) -> PlanKey:
    tensors = [_as_tensor(o) for o in call.operands]
    shapes = tuple(None if t is None else (t.shape, t.strides, t.dtype) for t in tensors)
    return (call.schema.name, shapes, tuple(sorted(call.attributes.items())))
