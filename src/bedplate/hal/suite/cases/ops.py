"""ops: the table bp.ops.1 against the oracle, and what every op must refuse.

Poison lies in outputs before each run. Without an oracle the comparing cases
are NOT RUN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bedplate.core.errors import BedplateError
from bedplate.hal import abi
from bedplate.hal.batch import Batch
from bedplate.hal.buffer import Tensor
from bedplate.hal.dtype import DType
from bedplate.hal.errors import Unsupported
from bedplate.hal.native import ffi, new
from bedplate.hal.ops import OpPlan, op_tensors, pack_attributes
from bedplate.hal.suite import structs
from bedplate.hal.suite.cases.queue import submit_command
from bedplate.hal.suite.registry import Case, CaseFailed, NotRun, case, register
from bedplate.hal.suite.samples import Array, Sample, normal, sample_of
from bedplate.hal.suite.subject import Subject, expect

BAD = abi.BP_INVALID_ARGUMENT


def place(s: Subject, op: str, sample: Sample) -> list[Tensor | None]:
    """Device tensors in the op's order; outputs full of 0xFF, which is NaN or -1."""
    s.reach()
    tensors: list[Tensor | None] = []
    for role in op_tensors(op):
        if role.name in sample.blocks:
            tensors.append(_upload_blocks(s, sample.inputs[role.name], sample.blocks[role.name]))
        elif role.name in sample.inputs:
            tensors.append(s.device.upload(sample.inputs[role.name]))
        elif role.name in sample.outputs:
            shape, dtype = sample.outputs[role.name]
            tensor = s.device.empty(shape, dtype)
            s.put(tensor.buffer, np.full(tensor.buffer.bytes, 0xFF, "u1"))
            tensors.append(tensor)
        else:
            tensors.append(None)
    return tensors


def _upload_blocks(s: Subject, rows: Array, dtype: DType) -> Tensor:
    elements = rows.shape[1] // dtype.block_bytes * dtype.block_elements
    tensor = s.device.empty((rows.shape[0], elements), dtype)
    s.device.write(tensor, rows)
    return tensor


def plan(
    s: Subject, op: str, tensors: Sequence[Tensor | None], attributes: Mapping[str, Any]
) -> OpPlan:
    """A plan; NOT RUN for an op that the backend does not have."""
    try:
        return s.device.plan_op(op, tensors, pack_attributes(op, **attributes))
    except Unsupported as error:
        raise NotRun(f"the backend has no {op} of this kind: {error.message}") from error


def run_op(s: Subject, op: str, sample: Sample) -> list[Array]:
    """Run an op; its written tensors in order."""
    tensors = place(s, op, sample)
    made = plan(s, op, tensors, sample.attributes)
    workspace = s.device.allocate(made.workspace_bytes) if made.workspace_bytes else None
    batch = Batch()
    batch.op(made, tensors, workspace)
    s.completes(batch, f"{op}")
    roles = zip(op_tensors(op), tensors, strict=True)
    return [s.device.download(tensor) for role, tensor in roles if role.written and tensor]


def _compare(s: Subject, op: str) -> None:
    sample = sample_of(op)
    if sample is None:
        raise NotRun(f"this suite has no inputs for {op}")
    if s.oracle is None:
        raise NotRun("no oracle is wired")
    given = sample.inputs
    roles = op_tensors(op)
    inputs = [given.get(role.name) for role in roles if not role.written or role.name in given]
    try:
        wanted = s.oracle.reference(op, inputs, sample.attributes)
        bounds = s.oracle.bound(op, inputs, sample.attributes)
    except BedplateError as error:
        raise NotRun(f"the oracle has no {op}: {error.message}") from error
    for got, reference, bound in zip(run_op(s, op, sample), wanted, bounds, strict=False):
        ours, theirs = _values(got), _values(np.asarray(reference))
        expect(ours.shape == theirs.shape, f"{op} gave the shape {ours.shape}")
        wrong = ~(np.abs(ours - theirs) <= bound) & ~(np.isnan(ours) & np.isnan(theirs))
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise _mismatch(op, at, ours[at], theirs[at], int(wrong.sum()))


def _mismatch(op: str, at: tuple[int, ...], ours: float, theirs: float, count: int) -> Exception:
    return CaseFailed(f"{op}{list(at)} is {ours}, not {theirs}; {count} elements are wrong")


def _values(array: Array) -> Array:
    if array.dtype == np.uint16:
        return (array.astype("u4") << 16).view("f4").astype("f8")
    return array.astype("f8")


def _bind(op: str) -> Any:
    return lambda s: _compare(s, op)


for _op in abi.OP_ATTRIBUTES:
    register(
        Case(
            name=f"ops.{_op}_agrees_with_the_oracle",
            capability="ops",
            polarity="positive",
            tier="quick",
            body=_bind(_op),
            doc=f"{_op} is within the oracle's bound on small random inputs.",
            catches=("wrong_op",) if _op == "convert" else (),
            essential=True,
        )
    )


@case("ops", "positive")
def rows_without_end_are_counted(s: Subject) -> None:
    """Rows past `count` are not touched, and count may be 0 or too large."""
    x = normal("count", 4, 32)
    for count, rows in ((0, 0), (3, 3), (9, 4)):
        inputs = {"x": x, "count": np.array([count], "u4")}
        (got,) = run_op(s, "convert", Sample(inputs, {"out": ((4, 32), DType.BF16)}))
        untouched = (got[rows:] == 0xFFFF).all()
        expect(untouched, f"with count {count}, rows past {rows} were written")
        expect((got[:rows] != 0xFFFF).all(), f"with count {count}, rows before {rows} are missing")


@case("ops", "positive")
def nothing_is_a_result(s: Subject) -> None:
    """Tensors of zero size give nothing, without a fault."""
    for shape in ((0, 32), (4, 0), (0, 0)):
        sample = Sample({"x": np.empty(shape, "f4")}, {"out": (shape, DType.BF16)})
        (got,) = run_op(s, "convert", sample)
        expect(got.shape == shape, f"convert of {shape} gave {got.shape}")


@case("ops", "positive")
def the_same_inputs_give_the_same_bits(s: Subject) -> None:
    """For a plan that says it is deterministic."""
    sample = sample_of("convert")
    assert sample is not None
    first, second = (run_op(s, "convert", sample)[0].tobytes() for _ in range(2))
    expect(first == second, "convert gave two results")


def raw_plan(s: Subject, op: int, count: int, spoil: Any = None) -> int:
    """The status of planning convert with raw structs."""
    shape = ffi.new("int64_t[]", [4, 32])
    tensors = []
    for dtype in (DType.F32, DType.BF16):
        tensor = new("bp_tensor", dtype=int(dtype), rank=2)
        tensor.shape = shape
        tensors.append(tensor)
    if spoil is not None:
        spoil(tensors)
    absent = ffi.cast("bp_tensor *", 0)
    array = ffi.new("const bp_tensor *[]", [tensors[0], absent, tensors[1]])
    out = new("bp_op_plan")
    return int(s.device.ops.plan(s.handle, op, array, count, ffi.NULL, 0, out))


@case("ops", "negative")
def unknown_ops_are_refused(s: Subject) -> None:
    """0 and a number from the future."""
    for number in (0, 9999):
        wanted = (abi.BP_UNSUPPORTED, abi.BP_NOT_FOUND)
        s.refuses(raw_plan(s, number, 3), wanted, f"planning op {number}")


@case("ops", "negative")
def wrong_tensor_lists_are_refused(s: Subject) -> None:
    """Too few, too many, none."""
    for count in (0, 2, 200):
        status = raw_plan(s, abi.BP_OP_CONVERT, count)
        s.refuses(status, BAD, f"planning convert with {count} tensors")


@case("ops", "negative")
def wrong_tensors_are_refused(s: Subject) -> None:
    """Negative size and stride, unknown dtype, a rank beyond the ABI, an extent that overflows."""
    for what, values in {
        "a negative size": {"shape": [-1, 32]},
        "a negative stride": {"stride": [-32, 1]},
        "an overflowing shape": {"shape": [1 << 40, 1 << 40]},
        "an overflowing stride": {"stride": [1 << 62, 1]},
        "an unknown dtype": {"dtype": 0x7FFFFFFF},
        "a rank of 9": {"rank": 9},
        "no shape": {"shape": None},
    }.items():
        keep: list[Any] = []

        def spoil(tensors: list[Any], values: Any = values, keep: list[Any] = keep) -> None:
            for name, value in values.items():
                given = ffi.NULL if value is None else value
                if isinstance(value, list):
                    given = ffi.new("int64_t[]", value)
                    keep.append(given)
                setattr(tensors[0], name, given)

        status = raw_plan(s, abi.BP_OP_CONVERT, 3, spoil)
        s.refuses(status, (BAD, abi.BP_UNSUPPORTED), f"a tensor with {what}")


@case("ops", "negative")
def wrong_bindings_are_refused(s: Subject) -> None:
    """Too short, stale, misaligned, too few, present where the plan has none, overlapping."""
    sample = sample_of("convert")
    assert sample is not None
    tensors = place(s, "convert", sample)
    made = plan(s, "convert", tensors, {})
    for what, index, name, value in (
        ("too short", 2, "length", 5 * 64 * 2 - 1),
        ("past the end", 2, "offset", 2),
        ("stale", 0, "memory", 1 << 40),
        ("none", 2, "memory", 0),
    ):
        batch = Batch()
        batch.op(made, tensors)
        setattr(batch._keep[-2][index], name, value)
        s.refused_batch(batch, BAD, f"a binding that is {what}")
    batch = Batch()
    batch.op(made, [tensors[0], tensors[0], tensors[2]])
    s.refused_batch(batch, BAD, "a binding that the plan does not have")
    batch = Batch()
    batch.op(made, tensors[:2])
    s.refused_batch(batch, BAD, "too few bindings")
    batch = Batch()
    batch.op(made, [tensors[0], None, tensors[0]])
    s.refused_batch(batch, BAD, "an output that overlaps an input")


@case("ops", "negative")
def released_plans_are_stale(s: Subject) -> None:
    """In a command, and for a second release."""
    sample = sample_of("convert")
    assert sample is not None
    tensors = place(s, "convert", sample)
    made = plan(s, "convert", tensors, {})
    batch = Batch()
    batch.op(made, tensors)
    handle, made.handle = made.handle, 0
    s.works(s.device.ops.release(s.handle, handle), "ops.release")
    s.refused_batch(batch, BAD, "a command of a released plan")
    s.refuses(s.device.ops.release(s.handle, handle), BAD, "releasing a plan twice")


@case("ops", "absent")
def ops_are_unsupported(s: Subject) -> None:
    """ext does not know bp.ops.1."""
    data = ffi.new("char[]", b"bp.ops.1")
    name = ffi.new("bp_text *", {"data": data, "length": len(data) - 1})
    expect(s.api.ext(name) == ffi.NULL, "ext knows bp.ops.1, which is not claimed")


def _tensor(s: Subject) -> tuple[Any, Any]:
    shape = ffi.new("int64_t[]", [4, 32])
    tensor = new("bp_tensor", dtype=int(DType.F32), rank=2)
    tensor.shape = shape
    return tensor, shape


def _plan_tensor(s: Subject, tensor: Any) -> int:
    out_tensor, keep = _tensor(s)
    out_tensor.dtype = int(DType.BF16)
    array = ffi.new("const bp_tensor *[]", [tensor, ffi.cast("bp_tensor *", 0), out_tensor])
    out = new("bp_op_plan")
    status = s.device.ops.plan(s.handle, abi.BP_OP_CONVERT, array, 3, ffi.NULL, 0, out)
    del keep
    return int(status)


def _op_command(s: Subject) -> tuple[Any, Any]:
    sample = sample_of("convert")
    assert sample is not None
    tensors = place(s, "convert", sample)
    batch = Batch()
    batch.op(plan(s, "convert", tensors, {}), tensors)
    return batch._commands[0], (batch, tensors)


structs.add(structs.StructRule("ops", "bp_tensor", _tensor, _plan_tensor))
structs.add(structs.StructRule("ops", "bp_op_command", _op_command, submit_command))
