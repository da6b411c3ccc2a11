"""PTX of other compilers does what numpy says, as far as the stored score tells."""

from __future__ import annotations

import json

import pytest
from benchmarks.simt.corpus.score import TEXTS, Launch, launches, try_launch

NEWEST = [launch for launch in launches() if launch.arch in ("sm_90", "sm_90a")]
SCORE = json.loads(TEXTS.with_name("score.json").read_text())
OTHERS = {row["launch"]: row for row in SCORE["others"]}


@pytest.mark.parametrize("launch", NEWEST, ids=lambda launch: launch.name)
def test_launch(launch: Launch) -> None:
    """A launch that the score has as right is right; another is refused where it says."""
    outcome = try_launch(launch, both=False)
    row = OTHERS.get(launch.name, {"stage": "right", "why": ""})
    assert (outcome.stage, outcome.why) == (row["stage"], row["why"])


def test_score_counts_all() -> None:
    """No text is left out of the share."""
    assert SCORE["of"] == len(list(launches()))
    assert SCORE["right"] == SCORE["of"] - len(OTHERS)
