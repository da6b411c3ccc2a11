from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.orchestrator.conftest import until

from bedplate.core import keyfile, keys
from bedplate.core.paths import run_dir
from bedplate.orchestrator import record
from bedplate.orchestrator.startkey import start_key


class Failed(Exception):
    pass


def ignore(text: str) -> None:
    """Nobody reads what this start says."""


def fail(data: Path, meanwhile: Callable[[], object] = lambda: None) -> str | None:
    """A start that comes to nothing; the key that it made."""
    made = None
    with contextlib.suppress(Failed), start_key(data, True, ignore) as key:
        made = key.made
        meanwhile()
        raise Failed
    return made


def test_a_key_that_was_made_for_nothing_is_forgotten(tmp_path: Path) -> None:
    """The next start makes one that somebody sees."""
    assert fail(tmp_path) is not None
    assert not (tmp_path / keyfile.FILE).exists()


def test_a_start_that_fails_leaves_a_key_that_was_there(tmp_path: Path) -> None:
    """Whoever made it has shown it."""
    with start_key(tmp_path, True, ignore) as first:
        assert first.made is not None
    fail(tmp_path)
    assert keyfile.load(tmp_path, {}).match(first.made) == "default"


def test_no_start_lives_by_a_key_that_goes(tmp_path: Path) -> None:
    """While one start may still fail another waits, then makes a key of its own."""
    notes: list[str] = []
    made: list[str | None] = []

    def second() -> None:
        with start_key(tmp_path, True, notes.append) as key:
            made.append(key.made)

    other = threading.Thread(target=second)

    def while_the_first_may_fail() -> None:
        other.start()
        until(lambda: bool(notes or made), "the second start waits, or does not")
        assert made == []

    first = fail(tmp_path, while_the_first_may_fail)
    other.join()
    assert notes == ["waiting for another start, which makes the API key"]
    assert made[0] not in (None, first)
    assert keyfile.load(tmp_path, {}).match(str(made[0])) == "default"


def test_a_key_that_was_there_holds_no_other_start_up(tmp_path: Path) -> None:
    """Only a key that may still go does."""
    keyfile.load_or_make(tmp_path, {})
    with start_key(tmp_path, True, ignore), start_key(tmp_path, True, ignore) as second:
        assert second.made is None


def test_the_platform_of_a_faster_start_ends_the_waiting(tmp_path: Path) -> None:
    """One on its way out does not."""
    own = record.start_ticks(os.getpid()) or 0
    running = record.Record(record.SCHEMA, os.getpid(), own, "http://127.0.0.1:1", "tiny", 1)
    run_dir(tmp_path).mkdir()
    with start_key(tmp_path, True, ignore):
        record.write(tmp_path, running)
        with start_key(tmp_path, True, ignore) as second:
            assert (second.faster, second.made) == (running, None)
        record.write(tmp_path, running.ending())
        notes: list[str] = []

        def third() -> None:
            with start_key(tmp_path, True, notes.append) as key:
                assert key.faster is None

        other = threading.Thread(target=third)
        other.start()
        until(lambda: bool(notes), "it waits")
    other.join()


def test_a_platform_for_one_question_stores_no_key(tmp_path: Path) -> None:
    """It is opened by a key in its environment that nobody else has."""
    with start_key(tmp_path, False, ignore) as key:
        assert key.made is None
        assert key.environment["BEDPLATE_API_KEY"].startswith("bp-")
    assert not (tmp_path / keyfile.FILE).exists()


def test_a_key_in_the_environment_is_taken_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is stored, nothing is shown."""
    monkeypatch.setenv("BEDPLATE_API_KEY", keys.make())
    for keep in (True, False):
        with start_key(tmp_path, keep, ignore) as key:
            assert (key.made, key.environment) == (None, {})
    assert not (tmp_path / keyfile.FILE).exists()
