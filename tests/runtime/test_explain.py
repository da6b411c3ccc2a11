"""Small traces by seed, and why a request of one does not fit."""

from __future__ import annotations

import numpy as np
import pytest

from bedplate.runtime.api import (
    WORKLOADS,
    NumbersAllocator,
    OptionsInvalid,
    explain,
    load_trace,
    replay,
    sanitize,
    workload,
    write_csv,
)
from bedplate.runtime.trace import ALLOCATE, FREE, RECORD, SYNC, USE, USED_ON

MIB = 1 << 20


@pytest.mark.parametrize("kind", WORKLOADS)
def test_a_seed_makes_a_trace_that_every_policy_takes(kind: str, tmp_path: object) -> None:
    """The same again, another for another seed; about as long as asked; readable as CSV."""
    trace = workload(kind, seed=5, records=1500)
    assert (trace == workload(kind, seed=5, records=1500)).all()
    assert not np.array_equal(trace, workload(kind, seed=6, records=1500))
    assert 1500 <= len(trace) < 1700
    path = f"{tmp_path}/made.csv"
    write_csv(path, trace)
    again = load_trace(path)
    assert (again["action"] == trace["action"]).all()
    for policy in ("bedplate", "pytorch", "buddy", "planned"):
        outcome = replay(again, policy)
        assert 0 < outcome.live_peak_bytes <= outcome.reserved_peak_bytes
    assert sanitize(again) == []


def test_kinds_differ_in_what_they_teach() -> None:
    """Serving scatters, training repeats, streams need to be told."""
    serving = workload("serving", seed=1)
    sizes = serving["bytes"][serving["action"] == ALLOCATE]
    assert sizes.max() > 500 * sizes.min()
    training = workload("training", seed=1)
    assert replay(training, "slab").ratio > 1.2 > replay(training, "bedplate").ratio
    told, untold = (workload("streams", seed=1, forget=part) for part in (0.0, 0.5))
    for trace in (told, untold):
        assert {USE, USED_ON, SYNC} < set(trace["action"].tolist())
    assert sanitize(told) == []
    assert len(sanitize(untold)) > 5
    for words in ({"records": 0}, {"forget": 1.5}):
        with pytest.raises(OptionsInvalid):
            workload("streams", seed=1, **words)
    with pytest.raises(OptionsInvalid, match="training, serving"):
        workload("dreams", seed=1)


def test_the_first_request_that_does_not_fit_is_explained() -> None:
    """Live blocks on both sides of each free one, by the records that asked for them."""
    rows = [(ALLOCATE, name, 8 * MIB) for name in range(1, 9)]
    rows += [(FREE, name, 0) for name in (2, 4, 5, 8)] + [(ALLOCATE, 9, 24 * MIB)]
    trace = np.array(
        [(i, name, size, 0, action, 2, 0, 0) for i, (action, name, size) in enumerate(rows)], RECORD
    )
    why = explain(trace, capacity_bytes=60 * MIB + 20 * MIB, policy="bedplate-noremap")
    assert why is not None
    assert (why.record, why.bytes) == (12, 24 * MIB)
    assert "25165824 bytes do not fit in pool `activations`" in why.message
    assert why.remedy
    assert sum(piece.bytes for piece in why.live) == 4 * 8 * MIB
    assert {piece.request for piece in why.live} == {0, 2, 5, 6}
    around = {(piece.before, piece.after) for piece in why.free}
    assert (0, None) in around, "behind the first block, up to the end of their segment"
    assert all(ends.count(None) == 1 for ends in around)
    lines = why.text.splitlines()
    assert lines[0].startswith("record 12: ")
    assert lines[1].startswith("do: ")
    assert sum(line.startswith("live") for line in lines) == 4
    assert any("between an end and the block of record" in line for line in lines)
    assert explain(trace, capacity_bytes=80 * MIB) is None, "remap makes room of the holes"
    with pytest.raises(OptionsInvalid, match="cannot say why"):
        explain(trace, capacity_bytes=MIB, policy="slab")


def test_more_blocks_than_one_look_holds_are_all_told() -> None:
    """Two thousand live blocks, each once."""
    with NumbersAllocator(1 << 32) as memory:
        stream, pool = memory.stream(), memory.pool("kv")
        live = {pool.allocate(2 * MIB, stream).address for _ in range(1500)}
        assert {int(seen.address) for seen in memory.blocks() if seen.state == 2} == live
