"""Serving on a device that does everything in an allowed but unexpected order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.serving.conftest import SMALL

from bedplate.serving.api import Engine, Precision, Sampling

GREEDY = Sampling(temperature=0, max_tokens=10, ignore_eos=True)


def test_tokens_do_not_depend_on_the_devices_order(tiny_path: Path) -> None:
    """Float32 and greedy: every prompt alone and in a batch gives what cpu gives."""
    prompts = [[1, *range(10, 12 + 7 * i)] for i in range(6)]
    found = []
    for device in ("cpu", "shuffle"):
        options = replace(SMALL, precision=Precision.FLOAT32, device=device)
        with Engine(str(tiny_path), options) as engine:
            engine.check_every_step = True
            found.append([result.tokens for result in engine.generate(prompts, GREEDY)])
    assert found[0] == found[1]
