"""ops: matmul in every kind that a backend takes, on whole numbers, whose products are exact.

Sums of at most 256 are exact in bf16, f16 and f32, in any order and with or
without fused multiply-add; so no oracle and no tolerance is needed. A kind
that the backend refuses as unsupported is passed over; with none left the case
is NOT RUN.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from bedplate.hal import abi
from bedplate.hal.batch import Batch
from bedplate.hal.buffer import Range, Tensor
from bedplate.hal.dtype import DType
from bedplate.hal.ops import OpPlan
from bedplate.hal.suite.cases.capture import launch, record
from bedplate.hal.suite.cases.ops import plan
from bedplate.hal.suite.registry import NotRun, case
from bedplate.hal.suite.samples import Array
from bedplate.hal.suite.subject import Subject, expect

F32, BF16, F16 = DType.F32, DType.BF16, DType.F16
BAD = abi.BP_INVALID_ARGUMENT
KINDS = [(F32, F32), (BF16, BF16), (BF16, F32), (F16, F16), (F16, F32)]
"""Dtype of a and b, and of out."""


def whole(seed: int, *shape: int, most: int = 2) -> Array:
    """Whole numbers from -most to most, as float32."""
    return np.random.default_rng(seed).integers(-most, most + 1, shape).astype("f4")


def bits(array: Array, dtype: DType) -> Array:
    """Whole numbers as the bits of a dtype; exact up to 256."""
    if dtype == F32:
        return array.astype("f4").view("u4")
    if dtype == F16:
        return array.astype("f2").view("u2")
    return (array.astype("f4").view("u4") >> 16).astype("u2")


def upload(
    s: Subject, array: Array, dtype: DType, strides: tuple[int, ...] | None = None
) -> Tensor:
    """A tensor of whole numbers; with strides, `array` is all of its memory."""
    raw = bits(array, dtype)
    buffer = s.memory(raw.nbytes, None)
    s.put(buffer, raw)
    if strides is None:
        return Tensor(buffer, 0, array.shape, dtype)
    return Tensor(buffer, 0, array.shape[::-1], dtype, strides)


def run(s: Subject, made: OpPlan, tensors: list[Tensor | None]) -> None:
    """One execution, with the workspace that it wants."""
    workspace = s.device.allocate(made.workspace_bytes) if made.workspace_bytes else None
    batch = Batch()
    batch.op(made, tensors, workspace)
    s.completes(batch, f"matmul by {made.library}")


def content(s: Subject, tensor: Tensor) -> Array:
    """The bits of a tensor, in its shape when it is dense."""
    return np.frombuffer(s.content(tensor.buffer), "u4" if tensor.dtype == F32 else "u2")


def kinds(s: Subject, depth: int = 40) -> Iterator[tuple[OpPlan, list[Tensor | None], Array]]:
    """A plan, its tensors and the wanted bits, for each kind that the backend takes."""
    found = False
    for given, gives in KINDS:
        a, b = whole(1, 24, depth), whole(2, depth, 16)
        out = s.memory(24 * 16 * (4 if gives == F32 else 2), 0xFF)
        tensors: list[Tensor | None] = [upload(s, a, given), upload(s, b, given), None, None, None]
        tensors.append(Tensor(out, 0, (24, 16), gives))
        try:
            made = plan(s, "matmul", tensors, {})
        except NotRun:
            continue
        found = True
        yield made, tensors, bits(a @ b, gives)
    if not found:
        raise NotRun("the backend has no matmul of f32, bf16 or f16")


def optional(s: Subject, names: Mapping[int, Tensor]) -> tuple[OpPlan, list[Tensor | None]]:
    """A plan of f32 [8,12] x [12,20] with optional tensors by place."""
    tensors: list[Tensor | None] = [
        upload(s, whole(3, 8, 12), F32),
        upload(s, whole(4, 12, 20), F32),
    ]
    tensors += [None, None, None, Tensor(s.memory(8 * 20 * 4, 0xFF), 0, (8, 20), F32)]
    for place, tensor in names.items():
        tensors[place] = tensor
    return plan(s, "matmul", tensors, {}), tensors


@case("ops", "positive")
def matmul_of_whole_numbers_is_exact(s: Subject) -> None:
    """f32, bf16 and f16, with out of the same kind or f32."""
    for made, tensors, wanted in kinds(s):
        run(s, made, tensors)
        out = tensors[-1]
        assert out is not None
        got = content(s, out).reshape(wanted.shape)
        wrong = int((got != wanted).sum())
        expect(wrong == 0, f"{wrong} elements are wrong, out is {out.dtype.name}")


@case("ops", "positive")
def matmul_takes_transposed_weights(s: Subject) -> None:
    """b as a view of [N,K] rows, which is how weights lie."""
    a, rows = whole(5, 9, 32), whole(6, 12, 32)
    b = upload(s, rows, F32, (1, 32))
    out = Tensor(s.memory(9 * 12 * 4, 0xFF), 0, (9, 12), F32)
    tensors: list[Tensor | None] = [upload(s, a, F32), b, None, None, None, out]
    run(s, plan(s, "matmul", tensors, {}), tensors)
    got = content(s, out).reshape(9, 12)
    expect((got == bits(a @ rows.T, F32)).all(), "a product with transposed weights is wrong")


@case("ops", "positive")
def matmul_adds_bias_and_residual(s: Subject) -> None:
    """Each alone and both; a residual that lies where out lies."""
    product = whole(3, 8, 12) @ whole(4, 12, 20)
    bias, residual = whole(7, 20, most=50), whole(8, 8, 20, most=50)
    for named in ({2: bias}, {3: residual}, {2: bias, 3: residual}):
        made, tensors = optional(s, {at: upload(s, value, F32) for at, value in named.items()})
        run(s, made, tensors)
        out = tensors[-1]
        assert out is not None
        got = content(s, out).reshape(8, 20)
        expect((got == bits(product + sum(named.values()), F32)).all(), f"wrong with {list(named)}")
    made, tensors = optional(s, {3: upload(s, residual, F32)})
    tensors[5] = tensors[3]
    run(s, made, tensors)
    assert tensors[5] is not None
    got = content(s, tensors[5]).reshape(8, 20)
    expect((got == bits(product + residual, F32)).all(), "a product onto its residual is wrong")


@case("ops", "positive")
def matmul_writes_its_rows_alone(s: Subject) -> None:
    """Rows of out with room between them: the room keeps its bytes."""
    a, b = whole(9, 6, 32), whole(10, 32, 8)
    out = Tensor(s.memory(6 * 12 * 4, 0xEE), 0, (6, 8), F32, (12, 1))
    tensors: list[Tensor | None] = [upload(s, a, F32), upload(s, b, F32), None, None, None, out]
    run(s, plan(s, "matmul", tensors, {}), tensors)
    rows = content(s, out).reshape(6, 12)
    expect((rows[:, :8] == bits(a @ b, F32)).all(), "strided rows are wrong")
    expect((rows[:, 8:] == 0xEEEEEEEE).all(), "matmul wrote between its rows")


@case("ops", "positive")
def matmul_of_nothing_is_nothing(s: Subject) -> None:
    """No rows, or no columns."""
    for rows, columns in ((0, 8), (8, 0)):
        a, b = s.memory(8 * 16 * 4), s.memory(16 * 8 * 4)
        out = Tensor(s.memory(256, 0xEE), 0, (rows, columns), F32)
        tensors: list[Tensor | None] = [Tensor(a, 0, (rows, 16), F32)]
        tensors += [Tensor(b, 0, (16, columns), F32), None, None, None, out]
        run(s, plan(s, "matmul", tensors, {}), tensors)
        expect(s.content(out.buffer) == b"\xee" * 256, "a product of nothing wrote something")


@case("ops", "positive")
def a_plan_keeps_its_flags(s: Subject) -> None:
    """One that is deterministic gives the same bits again, on numbers that must be rounded."""
    numbers = np.random.default_rng(11).standard_normal
    for made, tensors, _ in kinds(s, 96):
        a, b, out = tensors[0], tensors[1], tensors[-1]
        assert a is not None
        assert b is not None
        assert out is not None
        if not made.deterministic:
            continue
        for tensor in (a, b):
            # The upper half of binary32 is bfloat16; as binary16 it is another number, and any is.
            values = numbers(tensor.shape).astype("f4").view("u4")
            s.put(tensor.buffer, values if tensor.dtype == F32 else (values >> 16).astype("u2"))
        found = set()
        for _ in range(3):
            s.put(out.buffer, np.full(out.buffer.bytes, 0xFF, "u1"))
            run(s, made, tensors)
            found.add(s.content(out.buffer))
        expect(len(found) == 1, f"a deterministic plan gave {len(found)} results")


@case("ops", "positive", needs=["capture"])
def a_capturable_plan_is_recorded(s: Subject) -> None:
    """As a node of a graph that is launched twice."""
    for made, tensors, wanted in kinds(s):
        if not made.capturable:
            continue
        out = tensors[-1]
        assert out is not None
        workspace = s.device.allocate(made.workspace_bytes) if made.workspace_bytes else None
        batch, queue, done = Batch(), s.queue(), s.timeline()
        batch.op(made, tensors, workspace)
        graph = record(s, queue, batch)
        for turn in (1, 2):
            s.put(out.buffer, np.full(out.buffer.bytes, 0xFF, "u1"))
            s.works(launch(s, queue, graph, None, (done, turn)), "capture.launch")
            s.works(s.wait(done, turn), "waiting for a recorded product")
            got = content(s, out).reshape(wanted.shape)
            expect((got == wanted).all(), "a recorded product is wrong")
        s.works(s.api.capture.release(s.handle, graph), "capture.release")


@case("ops", "negative")
def a_small_workspace_is_refused(s: Subject) -> None:
    """One byte less than the plan says, and none."""
    tried = False
    for made, tensors, _ in kinds(s, 96):
        if not made.workspace_bytes:
            continue
        tried = True
        memory = s.device.allocate(made.workspace_bytes)
        for what, workspace in (
            ("a byte less", Range(memory, 0, made.workspace_bytes - 1)),
            ("no", None),
        ):
            batch = Batch()
            batch.op(made, tensors, workspace)
            s.refused_batch(batch, BAD, f"a matmul with {what} workspace")
    if not tried:
        raise NotRun("no plan of this backend wants a workspace")
