"""The logits of a whole prompt, put together from the steps that computed them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.serving.conftest import SMALL

from bedplate.serving.api import Engine, Precision
from bedplate.serving.scoring import Scoring

PROMPT = [1, 40, 41, 42, 43]


def test_two_precisions_agree_on_the_logits(shared: Engine) -> None:
    """Float32 and quantized differ by rounding only; shifted logits would differ by more."""
    options = replace(SMALL, precision=Precision.FLOAT32)
    with Engine(str(shared.model.path), options) as exact:
        want, got = exact.score(PROMPT * 8), shared.score(PROMPT * 8)
    assert want.shape == got.shape == (40, shared.tokenizer.size)
    spread = want.std()
    assert np.abs(want - got).max() < 0.2 * spread
    assert np.abs(want - np.roll(got, 1, axis=1)).max() > spread


def test_a_preempted_score_is_put_together_by_position(tiny_path: Path) -> None:
    """Two scores that do not fit the pool together: each comes back whole, and as if alone."""
    tight = replace(SMALL, precision=Precision.FLOAT32, max_model_tokens=96, max_batched_tokens=16,
                    prefix_sharing=False)  # fmt: skip
    prompts = [[1, *range(10, 90)], [2, *range(20, 100)]]
    with Engine(str(tiny_path), tight) as roomy:
        alone = [roomy.score(p) for p in prompts]
        bytes_per_block = roomy.kv_bytes // roomy.limits.block_count
    with (
        Engine(str(tiny_path), replace(tight, kv_memory_bytes=9 * bytes_per_block)) as engine,
        ThreadPoolExecutor(2) as pool,
    ):
        together = list(pool.map(engine.score, prompts))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4 * np.abs(one).max())


def test_rows_count_once_whatever_comes_again() -> None:
    """A preempted prompt starts anew; it is whole when every position was seen."""
    scoring = Scoring([1, 2, 3])
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert not scoring.take(np.array([0, 1], np.int32), rows[:2] + 9)
    assert not scoring.take(np.array([0, 1], np.int32), rows[:2])
    assert scoring.take(np.array([2], np.int32), rows[2:])
    assert scoring.logits is not None
    np.testing.assert_array_equal(scoring.logits, rows)
