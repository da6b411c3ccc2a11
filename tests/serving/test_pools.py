"""The engine's memory: taken by pool before the first step, and none after it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.serving.conftest import SMALL

from bedplate.core.gates import GateVerdict
from bedplate.hal.api import DType
from bedplate.serving.api import Engine, SteadyState
from bedplate.serving.steady import driver_calls, steady


def test_a_steady_engine_never_calls_the_driver(tiny_path: Path) -> None:
    """Prompts of all lengths, batches of all sizes; no allocation, release or full wait."""
    with Engine(str(tiny_path), SMALL) as engine:
        assert not steady(engine, 500)


def test_ten_thousand_steps_never_call_the_driver(tiny_path: Path) -> None:
    """The same over the window that is promised."""
    with Engine(str(tiny_path), SMALL) as engine:
        assert not steady(engine, 10_000)


def test_a_violation_is_counted(tiny_path: Path) -> None:
    """Memory that somebody takes while the engine serves shows, from the pool and beside it."""
    with Engine(str(tiny_path), SMALL) as engine:
        engine.pools.scratch.empty((32 << 20,), DType.F32)
        assert engine.pools.driver_calls_since_seal() == 1
        with driver_calls(engine.device) as seen:
            engine.device.allocate(64).release()
            queue = engine.device.queue()
            queue.synchronize()
            queue.destroy()
        assert seen["queue.synchronize"] == 1
        assert seen.keys() >= {"mem.create", "mem.release", "queue.create", "queue.destroy"}
        engine.device.allocate(64).release()
        assert seen["mem.create"] == 1


def test_metrics_have_every_pool(tiny_path: Path) -> None:
    """Reserved, allocated and the largest free block of each, and zeros once it is closed."""
    with Engine(str(tiny_path), SMALL) as engine:
        text = engine.metrics_text()
        found = re.findall(
            r'alloc_bytes\{device="cpu:0",pool="(\w+)",state="allocated"\} (\S+)', text
        )
        sizes = {pool: float(value) for pool, value in found}
        assert set(sizes) == {"weights", "kv", "activations", "scratch", "capture"}
        assert sizes["kv"] >= engine.kv_bytes
        assert sizes["capture"] == 0
        assert all(sizes[pool] > 0 for pool in ("weights", "activations", "scratch"))
        assert 'alloc_largest_free_block_bytes{device="cpu:0",pool="kv"}' in text
    assert 'pool="kv",state="reserved"} 0.0' in engine.metrics_text()


ROOT = Path(__file__).parents[2]


def test_the_gate_passes_and_a_seeded_violation_fails_it(
    tiny_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is; with one step that takes memory; and on a tree that is not ours."""
    gate = SteadyState(str(tiny_path), steps=30)
    assert gate.check(ROOT).verdict is GateVerdict.PASSED
    true = Engine.generate

    def greedy(self: Engine, *words: object) -> object:
        self.device.allocate(64).release()
        return true(self, *words)  # type: ignore[arg-type]

    monkeypatch.setattr(Engine, "generate", greedy)
    failed = gate.check(ROOT)
    assert failed.verdict is GateVerdict.FAILED
    assert "mem.create" in str(failed.reason)
    assert failed.findings[0].path == "src/bedplate/serving/steady.py"
    assert gate.check(tiny_path.parent).verdict is GateVerdict.NOT_RUN
    missing = SteadyState("no-such-model").check(ROOT)
    assert missing.verdict is GateVerdict.NOT_RUN
    assert "no-such-model" in str(missing.reason)
