"""What a start makes of the last words of a part that did not come up."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.orchestrator.conftest import processes_of

from bedplate.core.errors import BedplateError, UsageError
from bedplate.core.paths import FolderUnusable, run_dir
from bedplate.orchestrator import launch
from bedplate.orchestrator.api import Platform
from bedplate.orchestrator.errors import StartFailed, StartLacks, StartRefused
from bedplate.orchestrator.launch import LOG_FILE, sentence, wait_ready


def child(**changes: Any) -> dict[str, Any]:
    """A child as the status file shows it, starting for the first time."""
    return {
        "name": "engine",
        "state": "starting",
        "was_well": False,
        "restarts": 0,
        "exit_code": None,
        "last_end": "",
        "last_words": "",
        **changes,
    }


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("loading\nbedplate serve: x is wrong; give y\nclosing\n", "x is wrong; give y"),
        ("bedplate gateway: a\nbedplate serve: b", "b"),
        ("Killed\n", "Killed"),
        ("\n", ""),
    ],
)
def test_the_sentence_of_a_verb_is_found_among_its_words(words: str, told: str) -> None:
    """The error line wins over what came after it; else the last line."""
    assert sentence(words) == told


@pytest.mark.parametrize(
    ("changes", "kind", "exit_code"),
    [
        ({"restarts": 1, "exit_code": 2}, StartRefused, 2),
        ({"restarts": 1, "exit_code": 3}, StartLacks, 3),
        ({"restarts": 3, "exit_code": 1}, StartFailed, 1),
        ({"restarts": 3, "exit_code": -9, "last_end": "it was ended by SIGKILL"}, StartFailed, 1),
    ],
)
def test_a_part_that_cannot_start_is_given_up(
    tmp_path: Path, changes: dict[str, Any], kind: type[StartFailed], exit_code: int
) -> None:
    """A fault of input or machine at once, any other after three tries."""
    with pytest.raises(StartFailed, match="the engine does not start: ") as told:
        launch._check(tmp_path, [child(**changes)])
    assert type(told.value) is kind
    assert told.value.exit_code == exit_code


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"restarts": 2, "exit_code": 1},
        {"restarts": 9, "exit_code": 1, "was_well": True},
        {"restarts": 9, "exit_code": 2, "was_well": True},
    ],
)
def test_a_part_that_may_still_come_is_waited_for(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Not started yet, a second try, or one that had been well."""
    launch._check(tmp_path, [child(**changes)])


@pytest.mark.parametrize(
    ("code", "told", "exit_code"),
    [
        ("print('bedplate supervise: no luck'); raise SystemExit(2)", "no luck", 2),
        ("raise SystemExit(3)", "the supervisor ended at once", 3),
        ("raise SystemExit(1)", "the supervisor ended at once", 1),
        ("", "the platform was stopped while it was starting", 1),
    ],
)
def test_a_supervisor_that_ends_is_told_apart(
    tmp_path: Path, code: str, told: str, exit_code: int
) -> None:
    """By its own sentence and exit code, or by what its end means."""
    run_dir(tmp_path).mkdir()
    with (run_dir(tmp_path) / LOG_FILE).open("wb") as words:
        process = subprocess.Popen([sys.executable, "-c", code], stdout=words)
    with pytest.raises(StartFailed, match=told) as raised:
        wait_ready(tmp_path, process, lambda text: None)
    assert raised.value.exit_code == exit_code


def test_a_start_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    """The supervisor is gone before the error is raised; the sentence names the logs."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with pytest.raises(StartFailed, match=f"within 0 s; the logs are in {tmp_path}"):
        wait_ready(tmp_path, process, lambda text: None, deadline_s=0)
    assert process.returncode is not None


@pytest.mark.parametrize(
    ("broken", "number", "kind", "told"),
    [
        ("pathlib.Path.open", errno.ENOSPC, FolderUnusable, "/run: No space left .*; free space"),
        ("pathlib.Path.open", errno.EROFS, FolderUnusable, "/run: Read-only .*; choose another"),
        ("pathlib.Path.open", errno.EISDIR, UsageError, "/run: Is a directory; choose another"),
        ("subprocess.Popen", errno.EAGAIN, StartLacks, "no process can be started: Resource"),
    ],
)
def test_a_start_without_room_is_one_sentence_and_starts_nothing(
    tiny_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    broken: str,
    number: int,
    kind: type[BedplateError],
    told: str,
) -> None:
    """A disk that is full or read-only, a log in the way, no process to be had: no process runs,
    and no key stays that nobody saw."""

    def refuse(*arguments: object, **named: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(broken, refuse)
    with pytest.raises(kind, match=told):
        Platform.up(str(tiny_file), data_dir=tmp_path, port=0)
    monkeypatch.undo()
    assert processes_of(tmp_path) == []
    assert not (tmp_path / "keys.json").exists()


def test_readiness_needs_every_part() -> None:
    """One part that is not ready, or none at all, is enough to wait; nobody is asked then."""
    ready = child(state="ready")
    for children in ([], [ready, child()], [child(state="restarting"), ready]):
        assert not launch._ready(None, "nowhere", children)  # type: ignore[arg-type]


def test_what_went_wrong_meanwhile_is_part_of_the_note() -> None:
    """A part that is started again is named with why."""
    ended = child(restarts=1, last_end="it was ended by SIGKILL")
    assert launch._trouble([child()]) == ""
    assert launch._trouble([ended]) == "; the engine is started again: it was ended by SIGKILL"
