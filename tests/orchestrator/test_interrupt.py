"""A signal in the middle of a start: no process is left that nobody knows."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from bedplate.orchestrator.interrupt import held_back
from bedplate.orchestrator.launch import Launch, started


def interrupt(number: int, frame: FrameType | None) -> None:
    """As `up` takes SIGTERM."""
    raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """SIGTERM raises, and is as before afterwards."""
    before = signal.signal(signal.SIGTERM, interrupt)
    yield
    assert signal.getsignal(signal.SIGTERM) is interrupt
    signal.signal(signal.SIGTERM, before)


def test_a_signal_waits_for_the_end_of_the_block() -> None:
    """However often it comes, it is handled once, there."""
    done = []

    def block() -> None:
        with held_back():
            for _ in range(2):
                signal.raise_signal(signal.SIGTERM)
            done.append("whole")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert done == ["whole"]


def test_an_ignored_signal_stays_ignored() -> None:
    """A new process inherits that, unlike a handler."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with held_back():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not interrupt
    finally:
        signal.signal(signal.SIGHUP, before)


def test_another_thread_has_no_handlers_to_hold_back() -> None:
    """Python runs them on the main thread alone."""
    seen: list[object] = []

    def run() -> None:
        with held_back():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [interrupt]


@pytest.mark.parametrize("when", ["making", "block"])
def test_an_interrupted_start_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """While the process is made, or right after."""
    made: list[subprocess.Popen[bytes]] = []

    def start(self: Launch) -> subprocess.Popen[bytes]:
        made.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))
        if when == "making":
            signal.raise_signal(signal.SIGTERM)
        return made[0]

    monkeypatch.setattr(Launch, "start", start)
    with pytest.raises(KeyboardInterrupt), started(Launch(tmp_path, "m", "127.0.0.1", 1)):
        signal.raise_signal(signal.SIGTERM)
    assert made[0].returncode == -signal.SIGTERM
