"""PTX of other compilers does what numpy says."""

from __future__ import annotations

import json

import pytest
from benchmarks.simt.corpus.score import TEXTS, Launch, launches, try_launch

NEWEST = [launch for launch in launches() if launch.arch in ("sm_90", "sm_90a")]
EVERY = 4
"""Of the launches, which are in the order of their compilers, as many run each time."""
SLICE = [
    pytest.param(launch, id=launch.name, marks=[pytest.mark.soak] if place % EVERY else [])
    for place, launch in enumerate(NEWEST)
]


@pytest.mark.parametrize("launch", SLICE)
def test_launch(launch: Launch) -> None:
    """Right on the fast machine; `score` also compares the engines."""
    outcome = try_launch(launch, both=False)
    assert (outcome.stage, outcome.why) == ("right", "")


def test_first_score_counts_all() -> None:
    """No text is left out of the share."""
    score = json.loads(TEXTS.with_name("first_score.json").read_text())
    assert score["of"] == len(list(launches()))
    assert score["right"] == score["of"] - len(score["others"])
