"""The engine's memory: taken by pool before the first step, and none after it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from tests.serving.conftest import SMALL

from bedplate.hal.api import Device, DType, Queue
from bedplate.serving.api import Engine, Sampling

GREEDY = Sampling(temperature=0, max_tokens=60, ignore_eos=True)


@contextmanager
def driver_calls() -> Iterator[list[str]]:
    """What asks the HAL for memory or waits for all of a queue, by name."""
    seen: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for kind, name in (
            (Device, "allocate"),
            (Device, "release_memory"),
            (Queue, "synchronize"),
        ):
            true = getattr(kind, name)

            def counted(*words: object, true=true, name=name, **more: object) -> object:  # type: ignore[no-untyped-def]
                seen.append(name)
                return true(*words, **more)

            patch.setattr(kind, name, counted)
        yield seen


def steady(engine: Engine, steps: int) -> list[str]:
    """The driver's calls in a window of at least so many steps."""
    draw = np.random.default_rng(7)
    first = engine.stats().steps
    with driver_calls() as seen:
        while engine.stats().steps < first + steps:
            prompts = [
                [int(i) for i in draw.integers(3, 90, draw.integers(1, 60))]
                for _ in range(int(draw.integers(1, 9)))
            ]
            engine.generate(prompts, GREEDY)
    return seen


def test_a_steady_engine_never_calls_the_driver(tiny_path: Path) -> None:
    """Prompts of all lengths, batches of all sizes; no allocation, release or full wait."""
    with Engine(str(tiny_path), SMALL) as engine:
        assert steady(engine, 500) == []
        assert engine.pools.driver_calls_since_seal() == 0


@pytest.mark.soak
def test_ten_thousand_steps_never_call_the_driver(tiny_path: Path) -> None:
    """The same over the window that is promised."""
    with Engine(str(tiny_path), SMALL) as engine:
        assert steady(engine, 10_000) == []
        assert engine.pools.driver_calls_since_seal() == 0


def test_a_violation_is_counted(tiny_path: Path) -> None:
    """Memory that somebody takes while the engine serves shows, from the pool and beside it."""
    with Engine(str(tiny_path), SMALL) as engine:
        engine.pools.scratch.empty((32 << 20,), DType.F32)
        assert engine.pools.driver_calls_since_seal() == 1
        with driver_calls() as seen:
            engine.device.allocate(64).release()
        assert seen == ["allocate", "release_memory"]


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
