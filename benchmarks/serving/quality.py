"""The quality that stands beside a speed: our logits against the golden file."""

from __future__ import annotations

from typing import Any

from tests.serving.golden import compare

from bedplate.serving.api import Engine

LONGEST = 400  # tokens; longer prompts add time and say the same


def measure_quality(engine: Engine) -> dict[str, Any]:
    """Agreement of best tokens and error in derived standard deviations, on this very engine."""
    tally = compare.Tally()
    broken = 0
    for expected in compare.load(engine.tokenizer.encode):
        if len(expected.ids) <= LONGEST:
            logits = engine.score(expected.ids)
            broken += bool(compare.check(expected, logits, engine.precision.value, tally))
    return {**tally.as_quality(), "prompts_beyond_bound": broken, "against": "transformers float32"}
