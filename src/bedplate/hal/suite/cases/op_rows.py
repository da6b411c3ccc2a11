"""ops: how many rows run is a number in device memory; rows past it are not touched.

Each op's own loop keeps this, so each has a case: with 0, with a part of the
rows, and with more than there are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bedplate.hal.ops import op_tensors
from bedplate.hal.suite.cases.ops import run_op
from bedplate.hal.suite.registry import Body, Case, NotRun, register
from bedplate.hal.suite.samples import Array, sample_of
from bedplate.hal.suite.subject import Subject, expect


@dataclass(frozen=True, slots=True)
class Part:
    """With `count`, those places along `axis` of the written tensors change, and no other."""

    count: int
    changed: frozenset[int]
    axis: int = 0


FIRST_TWO = Part(2, frozenset({0, 1}))
PARTS = {
    "matmul": FIRST_TWO,
    "quantized_matmul": FIRST_TWO,
    "rmsnorm": FIRST_TWO,
    "softmax": FIRST_TWO,
    "silu_mul": FIRST_TWO,
    "embedding": FIRST_TWO,
    "sample": FIRST_TWO,
    "reduce": FIRST_TWO,
    # Row 0 is at position 0, where nothing turns.
    "rope": Part(2, frozenset({1})),
    # Slots 17 and -1: block 1, and none.
    "kv_write": Part(2, frozenset({1})),
    "block_copy": Part(1, frozenset({3}), axis=1),
    # The first sequence has three tokens.
    "paged_attention": Part(1, frozenset({0, 1, 2})),
}


def _before(op: str, inputs: Any, after: list[Array]) -> list[Array]:
    """The written tensors as they were: inputs, or poison."""
    written = [role.name for role in op_tensors(op) if role.written]
    found = []
    for name, array in zip(written, after, strict=False):
        poison = np.full(array.nbytes, 0xFF, "u1").view(array.dtype).reshape(array.shape)
        found.append(np.asarray(inputs.get(name, poison)))
    return found


def changed(before: Array, after: Array, axis: int) -> frozenset[int]:
    """Places along an axis whose bits differ."""
    size = before.shape[axis]
    old, new = (np.moveaxis(a, axis, 0).reshape(size, -1).copy() for a in (before, after))
    return frozenset(i for i in range(size) if old[i].tobytes() != new[i].tobytes())


def _run(s: Subject, op: str, count: int) -> list[frozenset[int]]:
    sample = sample_of(op)
    if sample is None:
        raise NotRun(f"this suite has no inputs for {op}")
    name = "sequence_count" if op == "paged_attention" else "count"
    inputs = {**sample.inputs, name: np.array([count], "u4")}
    after = run_op(s, op, replace(sample, inputs=inputs))
    pairs = zip(_before(op, inputs, after), after, strict=True)
    return [changed(old, new, PARTS[op].axis) for old, new in pairs]


def _check(op: str) -> Body:
    def body(s: Subject) -> None:
        part = PARTS[op]
        for places in _run(s, op, part.count):
            said = f"with {part.count} rows, {op} changed {sorted(places)}"
            expect(places == part.changed, f"{said}, not {sorted(part.changed)}")
        for places in _run(s, op, 0):
            expect(not places, f"with no rows, {op} changed {sorted(places)}")
        whole = _run(s, op, 1000)
        expect(all(part.changed <= places for places in whole), f"{op} of all rows is not whole")

    return body


for _op in PARTS:
    register(
        Case(
            name=f"ops.{_op}_runs_the_rows_it_is_told",
            capability="ops",
            polarity="positive",
            tier="quick",
            body=_check(_op),
            doc=f"{_op} with a count of 0, of a part, and of more than there are.",
        )
    )
