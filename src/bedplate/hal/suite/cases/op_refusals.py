"""ops: tensors that do not fit each other are refused by plan, numbers out of range by the run.

Each op checks its own shapes, so each has a case; a backend may call what it
never takes unsupported.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bedplate.hal import abi
from bedplate.hal.batch import Batch
from bedplate.hal.buffer import Tensor
from bedplate.hal.dtype import DType
from bedplate.hal.errors import InvalidArgument, Unsupported
from bedplate.hal.ops import op_tensors, pack_attributes
from bedplate.hal.suite.cases.ops import place, plan
from bedplate.hal.suite.registry import Body, Case, CaseFailed, case, register
from bedplate.hal.suite.samples import Array, Sample, sample_of
from bedplate.hal.suite.subject import Subject, expect

F32, I32, U8 = DType.F32, DType.I32, DType.U8
FAULTS = (abi.BP_LAUNCH_FAULT, abi.BP_INVALID_ARGUMENT)

WRONG: dict[str, list[tuple[str, tuple[int, ...], DType]]] = {
    "matmul": [("b", (31, 7), F32), ("out", (5, 8), F32), ("a", (32,), F32), ("bias", (8,), F32)],
    "quantized_matmul": [("a", (5, 32), F32), ("out", (7, 5), F32), ("a", (5, 64), I32)],
    "rmsnorm": [("weight", (63,), F32), ("out", (5, 63), F32), ("x", (5, 64), I32)],
    "rope": [("x", (3, 2, 15), F32), ("positions", (2,), I32), ("inverse_frequency", (7,), F32)],
    "paged_attention": [
        ("k_cache", (6, 3, 16, 64), F32),
        ("v_cache", (6, 2, 16, 32), F32),
        ("block_table", (4,), I32),
        ("query_start", (2,), I32),
        ("out", (4, 4, 32), F32),
    ],
    "softmax": [("out", (4, 64), F32), ("x", (5, 64), I32), ("x", (64,), F32)],
    "silu_mul": [("gate_up", (5, 63), F32), ("out", (5, 31), F32), ("out", (4, 32), F32)],
    "embedding": [("ids", (4,), F32), ("out", (4, 15), F32), ("out", (3, 16), F32)],
    "sample": [("rows", (3, 63), U8), ("tokens", (3,), F32), ("rows", (2, 64), U8)],
    "kv_write": [("slots", (2,), I32), ("k_cache", (4, 2, 16, 7), F32), ("v", (3, 1, 8), F32)],
    "block_copy": [("pairs", (2, 3), I32), ("pairs", (4,), I32), ("pairs", (2, 2), F32)],
    "reduce": [("out", (4,), F32), ("x", (320,), F32), ("out", (5,), I32)],
    "convert": [("out", (5, 63), DType.BF16), ("x", (320,), F32), ("out", (4, 64), DType.BF16)],
}


def known(op: str) -> Sample:
    """The sample of an op that has one."""
    sample = sample_of(op)
    assert sample is not None
    return sample


def _check(op: str) -> Body:
    def body(s: Subject) -> None:
        sample = known(op)
        good = place(s, op, sample)
        plan(s, op, good, sample.attributes)
        names = [role.name for role in op_tensors(op)]
        for name, shape, dtype in WRONG[op]:
            tensors: list[Tensor | None] = list(good)
            tensors[names.index(name)] = s.device.empty(shape, dtype)
            try:
                s.device.plan_op(op, tensors, pack_attributes(op, **sample.attributes))
            except (InvalidArgument, Unsupported):
                continue
            raise CaseFailed(f"{op} was planned with {name} {dtype.name} {list(shape)}")

    return body


for _op in WRONG:
    register(
        Case(
            name=f"ops.{_op}_refuses_what_does_not_fit",
            capability="ops",
            polarity="negative",
            tier="quick",
            body=_check(_op),
            doc=f"{_op} with one tensor of another shape, rank or dtype at a time.",
        )
    )


def faults(s: Subject, op: str, name: str, values: Array, word: str) -> None:
    """Running an op with those values of an input fails, naming the number; the device goes on."""
    sample = known(op)
    sample = replace(sample, inputs={**sample.inputs, name: values})
    tensors = place(s, op, sample)
    batch = Batch()
    batch.op(plan(s, op, tensors, sample.attributes), tensors)
    status, text = s.run(batch)
    expect(status in FAULTS, f"{op} with {name} of {values.tolist()} gave status {status}")
    expect(word in text, f"the sentence does not name {word}: {text}")
    s.completes(Batch(), "an empty batch after a fault")


@case("ops", "negative")
def ids_past_the_table_fault(s: Subject) -> None:
    """One too large, and a negative one."""
    faults(s, "embedding", "ids", np.array([0, 9, 1, 2], "i4"), "9")
    faults(s, "embedding", "ids", np.array([0, 1, 2, -5], "i4"), "-5")


@case("ops", "negative")
def slots_past_the_cache_fault(s: Subject) -> None:
    """Slot 64 of 64; negative ones mean nothing and are no fault."""
    faults(s, "kv_write", "slots", np.array([0, 64, 1], "i4"), "64")


@case("ops", "negative")
def blocks_past_the_cache_fault(s: Subject) -> None:
    """A source and a destination that are not there."""
    faults(s, "block_copy", "pairs", np.array([[0, 3], [4, 2]], "i4"), "4")
    faults(s, "block_copy", "pairs", np.array([[0, -7]], "i4"), "-7")


@case("ops", "negative")
def blocks_that_meet_fault(s: Subject) -> None:
    """Two writers of one block, and a block that is read and written: the order is nobody's."""
    faults(s, "block_copy", "pairs", np.array([[0, 3], [1, 3]], "i4"), "3")
    faults(s, "block_copy", "pairs", np.array([[0, 2], [2, 3]], "i4"), "2")


@case("ops", "negative")
def a_block_table_past_the_cache_faults(s: Subject) -> None:
    """A block that the sequence needs and the cache does not have."""
    faults(s, "paged_attention", "block_table", np.array([[4, 77], [2, 0]], "i4"), "77")
