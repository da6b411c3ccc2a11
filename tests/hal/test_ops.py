"""Ops from Python: names, order of tensors, attributes, and the one-call convenience."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bedplate.hal import abi
from bedplate.hal.api import (
    Batch,
    Device,
    DType,
    InvalidArgument,
    OpPlan,
    Queue,
    Tensor,
    TensorRole,
    op_names,
    op_tensors,
    open_device,
    pack_attributes,
)
from bedplate.hal.native import ffi, new
from bedplate.hal.ops import arrange


def test_names_come_in_the_order_of_their_numbers() -> None:
    """The vocabulary of the ABI, nothing else."""
    names = op_names()
    assert names[:3] == ["matmul", "quantized_matmul", "rmsnorm"]
    assert [getattr(abi, f"BP_OP_{name.upper()}") for name in names] == sorted(abi.OP_NAMES)


def test_tensors_have_roles() -> None:
    """Optional and written are marked one by one."""
    assert op_tensors("rope") == [
        TensorRole("x", False, True),
        TensorRole("positions", False, False),
        TensorRole("inverse_frequency", False, False),
        TensorRole("count", True, False),
    ]
    assert op_tensors("sample")[-1] == TensorRole("logprob", True, True)
    with pytest.raises(InvalidArgument, match="no op 'gelu'"):
        op_tensors("gelu")


def test_attributes_are_the_struct() -> None:
    """Head, values by name, the rest zero."""
    raw = pack_attributes("rope", pairing=1, scale=0.5)
    struct = ffi.cast("bp_rope_attributes *", ffi.from_buffer(raw))
    assert (struct.head.struct_version, struct.head.struct_size) == (1, len(raw))
    assert (struct.pairing, struct.scale) == (1, 0.5)
    assert list(struct.reserved) == [0] * 4


@pytest.mark.parametrize(
    ("op", "values", "words"),
    [
        ("gelu", {}, "no op 'gelu'"),
        ("rope", {"angle": 1}, "rope has no attribute 'angle'"),
        ("rope", {"reserved": 1}, "no attribute 'reserved'"),
        ("rope", {"pairing": "x"}, "pairing of rope is 'x'"),
        ("rope", {"pairing": -1}, "pairing of rope is -1"),
    ],
)
def test_wrong_attributes_are_refused(op: str, values: dict[str, object], words: str) -> None:
    """The op, the attribute and the value are named."""
    with pytest.raises(InvalidArgument, match=words):
        pack_attributes(op, **values)


def test_inputs_and_outputs_find_their_places(device: Device) -> None:
    """Optional ones by name between them; in-place tensors count as outputs."""
    a, b, c, d = (device.empty((1,), "f4") for _ in range(4))
    assert arrange("matmul", [a, b], [c], {"residual": d}) == [a, b, None, d, None, c]
    assert arrange("rope", [a, b], [c], {}) == [c, a, b, None]
    for inputs, outputs in (([a], [c]), ([a, b, d], [c]), ([a, b], []), ([a, b], [c, d])):
        with pytest.raises(InvalidArgument, match="matmul takes 2 inputs and 1 outputs"):
            arrange("matmul", inputs, outputs, {})


def test_one_call_computes(device: Device, queue: Queue) -> None:
    """The five-line example of the reference page, with a bias by name."""
    a, b = device.upload(np.ones((2, 3), "f4")), device.upload(np.ones((3, 4), "f4"))
    c, bias = device.empty((2, 4), "f4"), device.upload(np.arange(4, dtype="f4"))
    queue.op("matmul", [a, b], [c])
    assert queue.download(c).tolist() == [[3.0] * 4] * 2
    queue.op("matmul", [a, b], [c], bias=bias)
    assert queue.download(c).tolist() == [[3.0, 4.0, 5.0, 6.0]] * 2


def test_one_call_takes_attributes(device: Device, queue: Queue) -> None:
    """By keyword beside the tensors: eps 1 beside a mean square of 1 halves the power."""
    x, weight = device.upload(np.ones((1, 4), "f4")), device.upload(np.ones(4, "f4"))
    out = device.empty((1, 4), "f4")
    queue.op("rmsnorm", [x, weight], [out], eps=1.0)
    np.testing.assert_allclose(queue.download(out), np.sqrt(0.5), rtol=1e-6)
    with pytest.raises(InvalidArgument, match="no attribute 'epsilon'"):
        queue.op("rmsnorm", [x, weight], [out], epsilon=1.0)


def test_a_plan_tells_what_it_is(device: Device) -> None:
    """Workspace, whose code, and whether it may be captured and repeated."""
    tensors = [device.empty((2, 32), "f4"), None, device.empty((2, 32), DType.BF16)]
    plan = device.plan_op("convert", tensors)
    assert (plan.name, plan.tensor_count, plan.workspace_bytes) == ("convert", 3, 0)
    assert plan.library == "bedplate portable C"
    assert plan.deterministic
    assert plan.capturable
    plan.release()
    plan.release()
    assert plan.handle == 0


def test_shapes_that_disagree_are_refused_by_the_plan(device: Device) -> None:
    """The backend's own sentence, with both shapes."""
    tensors = [device.empty((2, 32), "f4"), None, device.empty((3, 32), DType.BF16)]
    with pytest.raises(InvalidArgument, match=r"x \[2,32\] but out \[3,32\]"):
        device.plan_op("convert", tensors)


def test_a_queue_is_given_back_by_its_context() -> None:
    """Leaving the block ends its thread: the handle is stale while the device lives."""
    with open_device("cpu", trust_claims=True) as device:
        with device.queue() as queue:
            handle = queue.handle
        assert queue.handle == 0
        assert device.api.queue.flush(device.handle, handle) < 0


@pytest.mark.parametrize(
    ("op", "shapes"),
    [
        ("reduce", [[0, -3], None, [0]]),
        ("silu_mul", [[0, -4], None, [0, -2]]),
        ("reduce", [[-3, 0], None, [-3]]),
    ],
)
def test_a_negative_size_beside_an_empty_one_is_refused(
    device: Device, op: str, shapes: list[list[int] | None]
) -> None:
    """A tensor without elements still has sizes."""
    keep, pointers = [], []
    for shape in shapes:
        if shape is None:
            pointers.append(ffi.NULL)
            continue
        tensor = new("bp_tensor", dtype=int(DType.F32), rank=len(shape))
        sizes, strides = ffi.new("int64_t[]", shape), ffi.new("int64_t[]", [1] * len(shape))
        tensor.shape, tensor.stride = sizes, strides
        keep += [sizes, strides, tensor]
        pointers.append(tensor)
    array, out = ffi.new("const bp_tensor *[]", pointers), new("bp_op_plan")
    number = getattr(abi, f"BP_OP_{op.upper()}")
    status = device.ops.plan(device.handle, number, array, len(pointers), ffi.NULL, 0, out)
    assert status == abi.BP_INVALID_ARGUMENT
    with pytest.raises(InvalidArgument, match=r"negative size -[34]"):
        device.check(status)


def test_a_stride_that_no_field_holds_is_refused(device: Device) -> None:
    """Over a size of one any stride is in bounds."""
    buffer = device.allocate(64)
    wide = Tensor(buffer, 0, (1, 1), "f4", (1 << 70, 1))
    with pytest.raises(InvalidArgument, match="strides"):
        device.plan_op("reduce", [wide, None, Tensor(buffer, 0, (1,), "f4")])


@pytest.mark.parametrize("flag", ["deterministic", "capturable"])
def test_a_plan_promises_what_its_flags_say(flag: str) -> None:
    """Each by its own bit, and nothing without one."""
    number = {"deterministic": abi.BP_OP_DETERMINISTIC, "capturable": abi.BP_OP_CAPTURABLE}[flag]

    def plan(*arguments: Any) -> int:
        arguments[-1].flags = number
        return 0

    device: Any = SimpleNamespace(
        handle=1, closed=True, ops=SimpleNamespace(plan=plan), check=lambda status: None
    )
    made = OpPlan(device, "convert", [])
    promised = {name for name in ("deterministic", "capturable") if getattr(made, name)}
    assert promised == {flag}


def test_a_tensor_too_many_is_refused_with_the_batch(device: Device, queue: Queue) -> None:
    """By the device, which counts them; while it is recorded it is taken for a written one."""
    x, out = device.upload(np.ones((2, 32), "f4")), device.empty((2, 32), DType.BF16)
    plan, batch = device.plan_op("convert", [x, None, out]), Batch()
    batch.op(plan, [x, None, out, x])
    assert [len(ranges) for ranges in batch.uses()] == [1, 2]
    with pytest.raises(InvalidArgument, match="command 0"):
        queue.submit(batch)
