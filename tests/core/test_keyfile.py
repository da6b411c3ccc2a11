import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from bedplate.core import keyfile, keys
from bedplate.core.errors import EnvironmentLacks, UsageError


def test_the_first_start_makes_one_key_and_shows_it_once(tmp_path: Path) -> None:
    """Only its hash is stored, for the owner's eyes; later starts accept it and show nothing."""
    ring, key = keyfile.load_or_make(tmp_path, {})
    assert key is not None
    assert ring.match(key) == "default"
    path = tmp_path / keyfile.FILE
    assert key not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again, shown = keyfile.load_or_make(tmp_path, {})
    assert shown is None
    assert again.match(key) == "default"
    assert again.match(keys.make()) is None


@pytest.mark.parametrize(
    ("number", "remedy"), [(errno.ENOSPC, "free space there, or choose"), (errno.EROFS, "choose")]
)
def test_a_folder_without_room_is_the_environments_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, remedy: str
) -> None:
    """Exit code 3 and one sentence; no key was made."""

    def refuse(*arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(EnvironmentLacks, match=f"cannot write in the folder .*; {remedy}"):
        keyfile.load_or_make(tmp_path, {})
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


def test_the_environments_key_wins_and_is_not_stored(tmp_path: Path) -> None:
    """BEDPLATE_API_KEY needs no file and makes none."""
    ring, shown = keyfile.load_or_make(tmp_path / "none", {"BEDPLATE_API_KEY": "chosen"})
    assert shown is None
    assert ring.match("chosen") == "environment"
    assert not (tmp_path / "none").exists()


def test_starts_at_once_agree_on_one_key(tmp_path: Path) -> None:
    """One of many shows a key, and all accept it."""
    found: list[tuple[keys.KeyRing, str | None]] = []
    threads = [
        threading.Thread(target=lambda: found.append(keyfile.load_or_make(tmp_path, {})))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (key,) = [shown for _, shown in found if shown is not None]
    assert [ring.match(key) for ring, _ in found] == ["default"] * 8


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"schema": "bedplate.keys/2", "keys": {}}',
        '{"schema": "bedplate.keys/1"}',
        '{"schema": "bedplate.keys/1", "keys": {"a": 1}}',
        '{"schema": "bedplate.keys/1", "keys": []}',
    ],
)
def test_a_damaged_file_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    """Nothing is accepted, nothing is overwritten; the sentence says what to do."""
    path = tmp_path / keyfile.FILE
    path.write_text(text)
    with pytest.raises(UsageError, match=r"does not hold API keys .*remove it"):
        keyfile.load_or_make(tmp_path, {})
    with pytest.raises(UsageError, match="does not hold API keys"):
        keyfile.check(tmp_path)
    assert path.read_text() == text


def test_checking_makes_no_key(tmp_path: Path) -> None:
    """It finds out whether there could be one: a folder that can be written, a sound file."""
    keyfile.check(tmp_path / "data")
    assert not (tmp_path / "data" / keyfile.FILE).exists()
    keyfile.load_or_make(tmp_path / "data", {})
    keyfile.check(tmp_path / "data")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write"):
        keyfile.check(tmp_path / "file")


def test_forgetting_makes_the_next_start_make_a_key(tmp_path: Path) -> None:
    """For a start that failed before anybody saw the key; fine to repeat."""
    _, first = keyfile.load_or_make(tmp_path, {})
    keyfile.forget(tmp_path)
    keyfile.forget(tmp_path)
    _, second = keyfile.load_or_make(tmp_path, {})
    assert second is not None
    assert second != first
