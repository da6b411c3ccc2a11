import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from checks.results import stale_numbers

Write = Callable[[str, str], Path]


def commit(tree: Path) -> str:
    """Commit everything and return the commit's id."""
    git = ["git", "-C", str(tree), "-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "x", "--allow-empty"], check=True)
    done = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def results(commit: str, dirty: bool = False) -> str:
    """A results file with one number of hal."""
    record = {"system": "hal", "name": "submit", "commit": commit, "dirty": dirty}
    return json.dumps({"schema": "bedplate.measurements/1", "results": [record]})


def test_numbers_older_than_their_code_are_listed(
    tree: Path, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only when that system's own sources changed since."""
    write("src/bedplate/hal/a.py", "")
    measured_at = commit(tree)
    write("benchmarks/results/2031-01-01-x.json", results(measured_at))
    write("src/bedplate/serving/a.py", "")
    commit(tree)
    assert stale_numbers(tree, False) == []
    assert capsys.readouterr().out == ""
    write("native/hal/a.c", "")
    commit(tree)
    assert stale_numbers(tree, False) == []
    assert f"1 numbers of hal are from {measured_at[:12]}" in capsys.readouterr().out


def test_numbers_of_edited_sources_are_refused(tree: Path, write: Write) -> None:
    """Nobody can check out what they were measured on."""
    write("benchmarks/results/a.json", results(commit(tree), dirty=True))
    (violation,) = stale_numbers(tree, False)
    assert "edited sources" in violation


def test_a_broken_file_is_a_violation(tree: Path, write: Write) -> None:
    """A results file that cannot be read proves nothing."""
    write("benchmarks/results/a.json", "{}")
    commit(tree)
    assert len(stale_numbers(tree, False)) == 1
