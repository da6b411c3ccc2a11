"""The engine's own batches under the happens-before checker of the runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bedplate.hal.api import Batch, Fence, Timeline
from bedplate.runtime.api import Checker, Record, span_of
from bedplate.serving.api import Engine, Sampling
from bedplate.serving.runner import Runner

HOST_WRITES = ("tokens", "positions", "kv_slots", "query_start", "context_length", "block_table")


def recorded(engine: Engine, monkeypatch: pytest.MonkeyPatch, *, hears_waits: bool) -> Checker:
    """A few requests; each batch, each wait of the host, and what the host touches."""
    checker = Checker()
    append, wait, run = Runner._append, Timeline.wait, Runner.run

    def note(stream: str, op: str, *, batch: Batch | None = None, **facts: Any) -> None:
        reads, writes = batch.uses() if batch else (facts.pop("reads", ()), facts.pop("writes", ()))
        spans = [[span_of(place) for place in places] for places in (reads, writes)]
        checker.add(Record(stream, op, *spans, **facts))

    def appending(
        self: Runner, part: tuple[Batch, ...], step: int, signal: Sequence[Fence] = ()
    ) -> None:
        moved = [(id(timeline), value) for timeline, value in signal]
        told = [("host", host_count[0])]
        for batch in part:
            signals = moved if batch is part[-1] else []
            note("queue", f"step {step}", batch=batch, waits=told, signals=signals)
        append(self, part, step, signal)

    def waiting(self: Timeline, value: int, *rest: Any) -> None:
        wait(self, value, *rest)
        if hears_waits:
            note("host", "wait", waits=[(id(self), value)])

    def running(self: Runner, *words: Any) -> NDArray[np.int32]:
        host_count[0] += 1
        written = [getattr(self._step, name) for name in HOST_WRITES]
        written += [self._step.sample_count, self._rows]
        note("host", "plan", writes=written, signals=[("host", host_count[0])])
        sampled = run(self, *words)
        note("host", "sampled", reads=[self._sampled])
        return sampled

    host_count = [0]
    monkeypatch.setattr(Runner, "_append", appending)
    monkeypatch.setattr(Timeline, "wait", waiting)
    monkeypatch.setattr(Runner, "run", running)
    engine.generate([[1, 2, 3], [4] * 20, [5, 6]], Sampling(max_tokens=4))
    return checker


def test_nothing_in_the_engines_steps_is_unordered(
    tiny: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plans written by the host, bodies, heads, sampled ids read back: all in one order."""
    checker = recorded(tiny, monkeypatch, hears_waits=True)
    assert sum(record.stream == "queue" for record in checker.records) >= 10
    assert max(len(record.writes) for record in checker.records) > 20
    assert checker.findings() == []


def test_an_engine_that_does_not_wait_is_found(
    tiny: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same steps without the host's waits: the ids and the next plan are hazards."""
    found = recorded(tiny, monkeypatch, hears_waits=False).findings()
    assert {finding.kind for finding in found} == {"hazard"}
    texts = "\n".join(map(str, found))
    assert "plan on host" in texts
    assert "sampled on host" in texts
