from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bedplate.core.paths import run_dir
from bedplate.orchestrator import record
from bedplate.orchestrator.orphans import Orphan, orphans, wait_for_orphans


@pytest.fixture
def left(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that was started for the data directory and ends when its stdin does."""
    command = [sys.executable, "-c", "input('started')", "--data-dir", str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        # the kernel shows its command line only some time after `Popen` returned
        assert process.stdout.read(7) == b"started"
        yield process


def publish(data: Path, *pids: int | None) -> None:
    """A status file as a killed supervisor left it."""
    run_dir(data).mkdir(exist_ok=True)
    children = [{"name": "gateway", "pid": pid} for pid in pids]
    (run_dir(data) / record.STATUS_FILE).write_text(json.dumps({"children": children}))


def test_orphans_are_our_own_processes_that_still_run(
    tmp_path: Path, left: subprocess.Popen[bytes]
) -> None:
    """Neither one that never started, nor one that ended, nor an id that came round again."""
    assert orphans(tmp_path) == []
    other = subprocess.Popen([sys.executable, "-c", "pass"])
    other.wait()
    publish(tmp_path, None, 1, other.pid, left.pid)
    assert orphans(tmp_path) == [Orphan("gateway", left.pid)]
    left.communicate()
    assert orphans(tmp_path) == []


def test_a_start_says_once_whom_it_waits_for(tmp_path: Path, left: subprocess.Popen[bytes]) -> None:
    """It goes on when the process ended, or when its deadline is over."""
    publish(tmp_path, left.pid)
    notes: list[str] = []
    wait_for_orphans(tmp_path, notes.append, deadline_s=0.1)
    assert len(orphans(tmp_path)) == 1

    def end(text: str) -> None:
        notes.append(text)
        left.communicate()

    wait_for_orphans(tmp_path, end, deadline_s=600)
    told = f"waiting until the gateway, process {left.pid}, of a platform that was killed ends"
    assert notes == [told, told]
    wait_for_orphans(tmp_path, notes.append)
    assert len(notes) == 2


def test_the_children_of_a_platform_that_runs_are_no_orphans(
    tmp_path: Path, left: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its supervisor looks after them."""
    publish(tmp_path, left.pid)
    monkeypatch.setattr(record, "read", lambda data: object())
    assert orphans(tmp_path) == []
    left.communicate()
