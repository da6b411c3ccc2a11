"""ops: plans as objects, and ops among other commands of a queue."""

from __future__ import annotations

from typing import Any

import numpy as np

from bedplate.hal import abi
from bedplate.hal.batch import Batch
from bedplate.hal.buffer import Tensor
from bedplate.hal.dtype import DType
from bedplate.hal.native import ffi, new
from bedplate.hal.ops import op_tensors, pack_attributes
from bedplate.hal.suite.cases.leaks import settles
from bedplate.hal.suite.cases.op_refusals import known
from bedplate.hal.suite.cases.ops import place, plan, run_op
from bedplate.hal.suite.cases.threads import together
from bedplate.hal.suite.registry import NotRun, case
from bedplate.hal.suite.samples import Sample
from bedplate.hal.suite.subject import Subject, expect

BAD = abi.BP_INVALID_ARGUMENT


def converted(value: float) -> int:
    """The bf16 bits of a number that has few enough."""
    return int(np.array([value], "f4").view("u4")[0] >> 16)


def words(s: Subject, tensor: Tensor | None) -> list[int]:
    """The bits of a bf16 tensor."""
    assert tensor is not None
    return np.frombuffer(s.content(tensor.buffer), "u2").tolist()  # type: ignore[no-any-return]


def pair(s: Subject, value: float, rows: int = 4) -> list[Tensor | None]:
    """Tensors of a convert of one number to bf16."""
    sample = Sample({"x": np.full((rows, 32), value, "f4")}, {"out": ((rows, 32), DType.BF16)})
    return place(s, "convert", sample)


@case("ops", "positive", catches=["spoiled_input"])
def inputs_are_only_read(s: Subject) -> None:
    """Of every op that the backend has, each tensor that is not written keeps its bits."""
    ran = 0
    for op in abi.OP_ATTRIBUTES:
        sample = known(op)
        tensors = place(s, op, sample)
        try:
            made = plan(s, op, tensors, sample.attributes)
        except NotRun:
            continue
        given = [
            (role.name, tensor, s.content(tensor.buffer))
            for role, tensor in zip(op_tensors(op), tensors, strict=True)
            if tensor is not None and not role.written
        ]
        workspace = s.device.allocate(made.workspace_bytes) if made.workspace_bytes else None
        batch = Batch()
        batch.op(made, tensors, workspace)
        s.completes(batch, op)
        for name, tensor, before in given:
            expect(s.content(tensor.buffer) == before, f"{op} wrote its input {name}")
        ran += 1
    if not ran:
        raise NotRun("the backend has none of the ops")


@case("ops", "positive")
def a_plan_works_anywhere(s: Subject) -> None:
    """Bound twice in one batch, to other memory and at an offset inside a larger one."""
    first, second = pair(s, 1.5), pair(s, -2.0)
    made = plan(s, "convert", first, {})
    whole = s.memory(1024, 0xEE)
    inside = Tensor(whole, 256, (4, 32), DType.BF16)
    batch = Batch()
    batch.op(made, first)
    batch.op(made, [second[0], None, inside])
    s.completes(batch, "one plan with two bindings")
    expect(words(s, first[-1]) == [converted(1.5)] * 128, "the first binding is wrong")
    raw = np.frombuffer(s.content(whole), "u2")
    expect((raw[128:256] == converted(-2.0)).all(), "the second binding is wrong")
    beside = (raw[:128] == 0xEEEE).all() and (raw[256:] == 0xEEEE).all()
    expect(beside, "an op wrote beside its binding")


@case("ops", "positive")
def ops_take_their_turn(s: Subject) -> None:
    """Between a fill before and a copy behind, in one batch."""
    tensors, copy = pair(s, 0.0), s.memory(256)
    source, out = tensors[0], tensors[-1]
    assert source is not None
    assert out is not None
    batch = Batch()
    batch.fill(source.buffer, 0x3FC00000)
    batch.op(plan(s, "convert", tensors, {}), tensors)
    batch.fill(source.buffer, 0)
    batch.copy(copy, out)
    batch.fill(out, 0)
    s.completes(batch, "a batch with an op in the middle")
    got = np.frombuffer(s.content(copy), "u2")
    expect((got == converted(1.5)).all(), "an op ran before or after its turn")


@case("ops", "positive", tier="full")
def a_plan_runs_on_several_queues(s: Subject) -> None:
    """At once, each with its own tensors."""
    sets, made = [pair(s, float(i + 1)) for i in range(4)], None
    done = s.timeline()
    lines = []
    made = plan(s, "convert", sets[0], {})
    for tensors in sets:
        batch, line = Batch(), s.timeline()
        batch.op(made, tensors)
        s.works(s.submit(s.queue(), batch, signal=[(line, 1)]), "queue.submit")
        lines.append((line, 1))
    s.works(s.submit(s.queue(), Batch(), wait=lines, signal=[(done, 1)]), "queue.submit")
    s.works(s.wait(done, 1), "waiting for four queues")
    for i, tensors in enumerate(sets):
        expect(words(s, tensors[-1]) == [converted(i + 1.0)] * 128, f"queue {i} is wrong")


@case("ops", "positive", tier="full")
def threads_plan_at_once(s: Subject) -> None:
    """Planned, run and released beside each other."""

    def body(number: int) -> None:
        for _ in range(10):
            tensors = pair(s, float(number + 1))
            made, batch = plan(s, "convert", tensors, {}), Batch()
            batch.op(made, tensors)
            s.completes(batch, "an op of a thread's plan")
            wanted = [converted(number + 1.0)] * 128
            expect(words(s, tensors[-1]) == wanted, "a thread's plan is wrong")
            made.release()

    together(body)


@case("ops", "positive")
def strided_rows_are_read_and_written(s: Subject) -> None:
    """Rows with room between them: the room keeps its bytes."""
    source, target = s.memory(4 * 64 * 4, 0), s.memory(4 * 48 * 2, 0xEE)
    batch = Batch()
    batch.fill(source, 0x40400000)
    x = Tensor(source, 0, (4, 32), DType.F32, (64, 1))
    out = Tensor(target, 0, (4, 32), DType.BF16, (48, 1))
    tensors: list[Tensor | None] = [x, None, out]
    batch.op(plan(s, "convert", tensors, {}), tensors)
    s.completes(batch, "an op on strided rows")
    rows = np.frombuffer(s.content(target), "u2").reshape(4, 48)
    expect((rows[:, :32] == converted(3.0)).all(), "strided rows are wrong")
    expect((rows[:, 32:] == 0xEEEE).all(), "an op wrote between strided rows")


def _status(s: Subject, tensors: Any, attributes: bytes, device: int | None = None) -> int:
    array = ffi.new("const bp_tensor *[]", tensors)
    raw = ffi.from_buffer(attributes) if attributes else ffi.NULL
    handle = s.handle if device is None else device
    out, op = new("bp_op_plan"), abi.BP_OP_CONVERT
    plan_call = s.device.ops.plan
    return int(plan_call(handle, op, array, len(tensors), raw, len(attributes), out))


def raw_convert() -> tuple[list[Any], Any]:
    """Raw tensors of a convert, and what they point to."""
    shape, tensors = ffi.new("int64_t[]", [4, 32]), []
    for dtype in (DType.F32, DType.BF16):
        tensor = new("bp_tensor", dtype=int(dtype), rank=2)
        tensor.shape = shape
        tensors.append(tensor)
    return [tensors[0], ffi.NULL, tensors[1]], shape


@case("ops", "negative")
def attributes_keep_the_size_rule(s: Subject) -> None:
    """Of every op: a reserved word and an unknown tail are refused, and so is a wrong length."""
    ran = 0
    for op in abi.OP_ATTRIBUTES:
        sample = known(op)
        tensors = place(s, op, sample)
        try:
            plan(s, op, tensors, sample.attributes)
        except NotRun:
            continue
        ran += 1
        good = pack_attributes(op, **sample.attributes)
        reserved = abi.LAYOUT[abi.OP_ATTRIBUTES[op]][1]["reserved"]
        longer = good[:4] + (len(good) + 8).to_bytes(4, "little") + good[8:]
        for what, raw, wanted in (
            ("reserved word", good[:reserved] + b"\x01" + good[reserved + 1 :], abi.BP_INVALID_EXT),
            ("unknown tail", longer + bytes(7) + b"\x01", abi.BP_INVALID_EXT),
            ("length that is not its own", good + bytes(8), BAD),
            ("version of 2", b"\x02" + good[1:], BAD),
        ):
            status = _plan_raw(s, op, tensors, raw)
            s.refuses(status, wanted, f"attributes of {op} with a {what}")
        s.works(_plan_raw(s, op, tensors, longer + bytes(8)), f"attributes of {op}, tail zero")
    if not ran:
        raise NotRun("the backend has none of the ops")


def _plan_raw(s: Subject, op: str, tensors: list[Tensor | None], attributes: bytes) -> int:
    keep, described = [], []
    for tensor in tensors:
        if tensor is None:
            described.append(ffi.NULL)
            continue
        shape = ffi.new("int64_t[]", [*tensor.shape, 0])
        stride = ffi.new("int64_t[]", [*tensor.strides, 0])
        one = new("bp_tensor", dtype=int(tensor.dtype), rank=len(tensor.shape))
        one.shape, one.stride = shape, stride
        keep += [shape, stride, one]
        described.append(one)
    array = ffi.new("const bp_tensor *[]", described)
    raw, number = ffi.from_buffer(attributes), getattr(abi, f"BP_OP_{op.upper()}")
    call = s.device.ops.plan
    return int(call(s.handle, number, array, len(tensors), raw, len(raw), new("bp_op_plan")))


@case("ops", "negative")
def a_needed_tensor_must_be_there(s: Subject) -> None:
    """Null is for optional ones; a null list is none."""
    tensors, keep = raw_convert()
    for at in (0, 2):
        spoiled = list(tensors)
        spoiled[at] = ffi.NULL
        s.refuses(_status(s, spoiled, b""), BAD, f"planning convert without tensor {at}")
    out = new("bp_op_plan")
    call = s.device.ops.plan
    status = call(s.handle, abi.BP_OP_CONVERT, ffi.NULL, 3, ffi.NULL, 0, out)
    s.refuses(status, BAD, "planning with a null list")
    expect(out.plan == 0, "a refused plan has a handle")
    del keep


@case("ops", "negative")
def plans_belong_to_a_device(s: Subject) -> None:
    """A closed device plans nothing; another one knows no plan of ours."""
    tensors, keep = raw_convert()
    other = Subject(s.backend, s.index)
    handle = other.handle
    foreign = pair(other, 1.0)
    made = plan(other, "convert", foreign, {})
    s.refuses(s.device.ops.release(s.handle, made.handle), BAD, "releasing a foreign plan")
    batch, mine = Batch(), pair(s, 1.0)
    batch.op(made, mine)
    s.refused_batch(batch, BAD, "a command of a foreign plan")
    del foreign, batch
    made.release()
    other.close()
    s.refuses(_status(s, tensors, b"", handle), BAD, "planning on a closed device")
    del keep


@case("ops", "positive")
def a_plan_says_what_it_is(s: Subject) -> None:
    """A handle, a library, flags that are known, a workspace that can be had."""
    made = plan(s, "convert", pair(s, 1.0), {})
    expect(made.handle and made.library, "a plan has no handle or names no library")
    expect(made.workspace_bytes < s.info.memory_bytes, f"it wants {made.workspace_bytes} bytes")
    again = plan(s, "convert", pair(s, 1.0), {})
    expect(again.handle != made.handle, "two live plans have one handle")


@case("ops", "positive", tier="full")
def plans_come_back(s: Subject) -> None:
    """Fifteen hundred plans, each released."""
    tensors = pair(s, 1.0)

    def body() -> None:
        for _ in range(20):
            plan(s, "convert", tensors, {}).release()

    settles(body, 75, "twenty plans")


@case("ops", "positive", tier="full")
def wide_rows_agree_with_narrow_ones(s: Subject) -> None:
    """convert of rows longer than any vector, with a rest: as numpy rounds."""
    x = (np.arange(3 * 4099, dtype="f4").reshape(3, 4099) - 5000) / 16
    (got,) = run_op(s, "convert", Sample({"x": x}, {"out": ((3, 4099), DType.BF16)}))
    bits = x.view("u4")
    wanted = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("u2")
    expect((got == wanted).all(), f"{int((got != wanted).sum())} elements are wrong")
