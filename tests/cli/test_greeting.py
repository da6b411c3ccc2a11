from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from bedplate.cli.greeting import question
from bedplate.orchestrator.api import Platform, Reply


def test_the_first_question_is_asked_greedily_and_bounded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """So that every first start of a model shows the same answer, and soon."""
    asked: dict[str, object] = {}

    def ask(*arguments: object, **parameters: object) -> Reply:
        asked.update(parameters)
        return Reply("Red.", 3, 2, 1, 2)

    monkeypatch.setattr("bedplate.orchestrator.api.ask", ask)
    monkeypatch.setattr(Platform, "internal_key", "key")
    plate = Platform(tmp_path, "http://127.0.0.1:1", "m", None, True)
    reply = question(argparse.Namespace(json=True, prompt="Name three seas."), plate)
    assert reply.text == "Red."
    assert (asked["temperature"], asked["max_tokens"]) == (0, 48)
