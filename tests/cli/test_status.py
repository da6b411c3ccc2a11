from __future__ import annotations

import argparse
import re
import time
from typing import Any

import pytest

from bedplate.cli import status
from bedplate.core.units import NS_PER_S
from bedplate.orchestrator.api import EngineLoad, Platform

LOAD = EngineLoad(
    running=2,
    waiting=3,
    finished=5,
    cancelled=7,
    refused=11,
    failed=13,
    blocks_used=25,
    blocks_cached=17,
    blocks_total=100,
    tokens_read=1900,
    tokens_written=2300,
    preemptions=29,
    last_step_ns=None,
    tokens_per_second=31.4,
)


def child(**changes: Any) -> dict[str, Any]:
    """A part as the platform's status shows it."""
    return {
        "name": "engine",
        "state": "ready",
        "since_ns": time.time_ns() - 90 * NS_PER_S,
        "pid": 42,
        "memory_bytes": 3 << 20,
        "restarts": 2,
        "last_end": "it was ended by SIGKILL",
        "last_words": "one\ntwo\nthree\nfour",
        **changes,
    }


def report(**changes: Any) -> dict[str, Any]:
    """The status of a platform with two parts."""
    return {
        "url": "http://127.0.0.1:1",
        "model": "m",
        "started_ns": time.time_ns() - 3700 * NS_PER_S,
        "children": [child(), child(name="gateway", restarts=0, last_end="")],
        "engine": LOAD,
        "engine_reason": None,
        **changes,
    }


def test_a_status_tells_parts_and_load(capsys: pytest.CaptureFixture[str]) -> None:
    """Names, times, memory, restarts with their reason; requests, blocks, tokens, progress."""
    status.show(report())
    out = capsys.readouterr().out
    assert out.startswith("m at http://127.0.0.1:1/v1, up for 1 h 01 min\n")
    assert re.search(r"engine +ready +1 min 30 s +42 +3\.0 MiB +2 +it was ended by SIGKILL", out)
    assert re.search(r"gateway +ready .* 0 +-\n", out)
    assert "2 running, 3 waiting, 5 done, 7 cancelled, 11 refused, 13 failed" in out
    assert "25 of 100 used (25.0%), 17 kept for sharing, 29 preemptions" in out
    assert "1,900 read, 2,300 written, 31 tokens/s now" in out
    assert "no step yet" in out
    assert "said last" not in out


def test_a_part_that_is_not_ready_shows_its_last_words(capsys: pytest.CaptureFixture[str]) -> None:
    """Its last lines, and that the engine's load is unknown."""
    parts = [child(state="restarting", pid=None, memory_bytes=None)]
    status.show(report(children=parts, engine=None, engine_reason="it gives no metrics now"))
    out = capsys.readouterr().out
    assert re.search(r"restarting +1 min 30 s +- +- +2", out)
    assert "engine: it gives no metrics now" in out
    assert out.endswith("the engine said last:\n  two\n  three\n  four\n")


def test_times_are_whole_seconds_beyond_one_and_never_negative() -> None:
    """A clock that was set back is no reason to show a negative age."""
    now = time.time_ns()
    assert status.since(now + 5 * NS_PER_S) == 0
    assert status.since(now - 5 * NS_PER_S) % NS_PER_S == 0
    assert 5 * NS_PER_S <= status.since(now - 5 * NS_PER_S) <= 6 * NS_PER_S


@pytest.mark.parametrize(
    ("parts", "code"),
    [([child(), child()], 0), ([child(), child(state="starting")], 1), ([], 1)],
)
def test_the_exit_code_says_whether_every_part_is_ready(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    parts: list[dict[str, Any]],
    code: int,
) -> None:
    """0 only when all are; a platform that has only just begun has none yet."""

    class Found:
        def status(self) -> dict[str, Any]:
            return report(children=parts)

    monkeypatch.setattr(Platform, "find", lambda data_dir: Found())
    assert status.run(argparse.Namespace(data_dir=None, json=False)) == code
    assert "m at" in capsys.readouterr().out
