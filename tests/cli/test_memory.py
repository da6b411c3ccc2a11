"""`bedplate memory`: tables, JSON, pages, and one sentence for wrong input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bedplate.cli.main import main

TRACE = "Thread,Time,Action,Pointer,Size,Stream\n0,1,allocate,0x1,3000000,0\n0,2,free,0x1,0,0\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """One request and its free."""
    path = tmp_path / "small.csv"
    path.write_text(TRACE)
    return path


def test_replay_prints_a_table_and_json(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One row a policy; the model of PyTorch is marked without a recording."""
    assert main(["memory", "replay", str(trace)]) == 0
    out = capsys.readouterr().out
    assert "bedplate" in out
    assert "MODEL NOT VALIDATED" in out
    assert main(["memory", "replay", str(trace), "--policy", "slab", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows[0]["policy"] == "slab"
    assert rows[0]["live_peak_bytes"] == 3_000_000


def test_plan_show_and_convert(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plan's size and bound, a picture here and as a page, and another form."""
    assert main(["memory", "plan", str(trace), "--out", str(tmp_path / "plan.json")]) == 0
    assert "1 requests fit in" in capsys.readouterr().out
    assert json.loads((tmp_path / "plan.json").read_bytes())["offsets"] == [0]
    assert main(["memory", "show", str(trace)]) == 0
    assert "█" in capsys.readouterr().out
    assert main(["memory", "show", str(trace), "--html", str(tmp_path / "p.html")]) == 0
    assert "<svg" in (tmp_path / "p.html").read_text()
    assert main(["memory", "convert", str(trace), str(tmp_path / "t.bpt")]) == 0
    assert main(["memory", "replay", str(tmp_path / "t.bpt"), "--policy", "buddy"]) == 0


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["replay", "NONE.csv"], "cannot be read"),
        (["replay", "TRACE", "--policy", "pytroch"], "unknown policy 'pytroch'"),
        (["show", "TRACE", "--policy", "x"], "unknown policy"),
        (["replay", "TRACE", "--capacity", "much"], "much"),
        (["convert", "TRACE", "out.txt"], "neither .csv nor .bpt"),
        (["show", "TRACE", "--html", "no/such/folder/p.html"], "no/such/folder"),
    ],
)
def test_wrong_input_is_one_sentence(
    trace: Path, words: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, the value in it, no traceback."""
    given = [str(trace) if word == "TRACE" else word for word in words]
    assert main(["memory", *given]) == 2
    err = capsys.readouterr().err
    assert part in err
    assert "Traceback" not in err
