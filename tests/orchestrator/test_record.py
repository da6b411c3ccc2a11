from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bedplate.core.paths import run_dir
from bedplate.orchestrator import record
from bedplate.orchestrator.errors import NotRunning
from bedplate.orchestrator.record import Record


def mine(**changes: object) -> Record:
    """A record of this process."""
    ticks = record.start_ticks(os.getpid())
    assert ticks is not None
    made = Record(record.SCHEMA, os.getpid(), ticks, "http://127.0.0.1:1", "m", 0)
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with its run folder."""
    run_dir(tmp_path).mkdir()
    return tmp_path


def test_a_record_is_read_while_its_process_lives(data: Path) -> None:
    """Written, read, private."""
    record.write(data, mine())
    assert record.read(data) == mine()
    assert (run_dir(data) / record.FILE).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("changes", [{"start_ticks": 1}, {"pid": 2**22 + 1}, {"schema": "x/2"}])
def test_a_record_of_another_process_or_schema_is_none(
    data: Path, changes: dict[str, object]
) -> None:
    """A process id that came round again is another process."""
    record.write(data, mine(**changes))
    assert record.read(data) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"pid": 1}', "\x00"])
def test_a_damaged_record_is_none(data: Path, text: str) -> None:
    """A torn or foreign file is as good as no platform."""
    (run_dir(data) / record.FILE).write_text(text)
    assert record.read(data) is None


def test_a_zombie_is_gone() -> None:
    """A process that ended but was not collected runs no platform."""
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert record.start_ticks(child.pid) is None
    child.wait()
    assert record.start_ticks(child.pid) is None


def test_the_lock_is_held_once_and_leaves_nothing(tmp_path: Path) -> None:
    """Nobody else gets it; release removes it with all of a running platform's files."""
    held = record.lock(tmp_path)
    assert held is not None
    assert record.lock(tmp_path) is None
    assert not os.get_inheritable(held.fileno())
    record.write(tmp_path, mine())
    (run_dir(tmp_path) / "engine.log").write_text("kept")
    record.release(tmp_path, held)
    assert [path.name for path in run_dir(tmp_path).iterdir()] == ["engine.log"]
    again = record.lock(tmp_path)
    assert again is not None
    record.release(tmp_path, again)


def test_a_lock_whose_file_was_removed_meanwhile_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its holder released it between our opening and our locking: ours would lock nothing."""
    first = record.lock(tmp_path)
    assert first is not None
    path = run_dir(tmp_path) / record.LOCK_FILE
    opened: list[int] = []
    is_at = record._is_at

    def removed_at_first(file: object, where: Path) -> bool:
        if not opened:
            path.unlink()
        opened.append(1)
        return is_at(file, where)  # type: ignore[arg-type]

    record.release(tmp_path, first)
    monkeypatch.setattr(record, "_is_at", removed_at_first)
    second = record.lock(tmp_path)
    assert second is not None
    assert len(opened) == 2
    assert path.exists()
    monkeypatch.undo()
    assert record.lock(tmp_path) is None
    record.release(tmp_path, second)


def test_sweeping_spares_a_running_platform(tmp_path: Path) -> None:
    """What a killed one left goes; while the lock is held, nothing does; no folder, no harm."""
    record.sweep(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    held = record.lock(tmp_path)
    assert held is not None
    socket = run_dir(tmp_path) / record.ENGINE_SOCKET
    socket.touch()
    record.sweep(tmp_path)
    assert socket.exists()
    held.close()  # killed: unlocked, nothing removed
    record.sweep(tmp_path)
    assert list(run_dir(tmp_path).iterdir()) == []


def test_the_children_are_those_that_were_published(data: Path) -> None:
    """As the supervisor wrote them."""
    (run_dir(data) / record.STATUS_FILE).write_text('{"children": [{"name": "engine"}]}')
    assert record.children(data) == [{"name": "engine"}]


def test_what_is_not_there_says_how_to_start(data: Path) -> None:
    """Without a platform there is no internal key and no child."""
    with pytest.raises(NotRunning, match="bedplate up"):
        record.internal_key(data)
    assert record.children(data) == []
    for text in ("", "{}", "[]", '{"children": 1}'):
        (run_dir(data) / record.STATUS_FILE).write_text(text)
        assert record.children(data) == []
