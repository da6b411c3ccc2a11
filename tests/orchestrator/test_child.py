"""Children under supervision, with real processes and a clock that tests move."""

from __future__ import annotations

import dataclasses
import errno
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bedplate.core.clock import FakeClock
from bedplate.orchestrator.child import (
    FORGET_AFTER_S,
    PAUSES_ONCE_WELL_S,
    PAUSES_S,
    Child,
    Command,
    Patience,
)
from bedplate.orchestrator.probe import Endpoint
from bedplate.orchestrator.record import start_ticks

FAKE = Path(__file__).with_name("fake_child.py")
SECOND_NS = 1_000_000_000
QUICK = Patience(0.0, 0.0, probe_timeout_s=10.0, stop_deadline_s=0.2)


class Rig:
    """Children of one test, their clock, and waiting for what they become."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock = folder, FakeClock()
        self.children: list[Child] = []

    def child(self, mode: str, patience: Patience = QUICK) -> Child:
        socket = self.folder / "s"
        socket.unlink(missing_ok=True)
        arguments = [sys.executable, str(FAKE), mode, str(socket)]
        command = Command("fake", arguments, self.folder / "log", Endpoint(path=socket))
        made = Child(command, patience, self.clock)
        self.children.append(made)
        return made

    def until(self, child: Child, condition: Callable[[], bool]) -> None:
        """Tick in real time until `condition`; the fake clock stands still."""
        give_up = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < give_up, f"it stays {child.state}: {child.reason}"
            child.tick()
            time.sleep(0.01)

    def until_ready(self, child: Child) -> int:
        """Tick until it is ready; its process id."""
        (self.folder / "s").unlink(missing_ok=True)
        self.until(child, lambda: child.state == "ready")
        assert child.pid is not None
        return child.pid

    def until_ended(self, child: Child) -> float:
        """Tick until the process ended; the pause before the next start, by the fake clock."""
        before = child.restarts
        self.until(child, lambda: child.restarts > before)
        pause = 0.0
        while True:
            child.tick()
            if child.pid is not None:
                return pause
            self.clock.advance(SECOND_NS // 10)
            pause = round(pause + 0.1, 1)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """A rig whose children are all ended at the end."""
    made = Rig(tmp_path)
    yield made
    for child in made.children:
        child.wait()


def test_a_child_that_never_gets_well_is_tried_with_growing_pauses(rig: Rig) -> None:
    """At once the first time, then later and later, up to a bound."""
    child = rig.child("exit-1")
    pauses = [rig.until_ended(child) for _ in range(len(PAUSES_S) + 1)]
    assert pauses == [*PAUSES_S, PAUSES_S[-1]]
    assert (child.exit_code, child.last_end) == (1, "it exited with 1")
    assert "the file is no good" in child.last_words
    assert not child.was_well


def test_a_child_that_had_been_well_comes_back_soon_however_often(rig: Rig) -> None:
    """Killed right after it is ready, again and again: the pause stays at a second."""
    child = rig.child("ready")
    pauses = []
    for _ in range(5):
        os.kill(rig.until_ready(child), signal.SIGKILL)
        pauses.append(rig.until_ended(child))
    longest = PAUSES_ONCE_WELL_S[-1]
    assert pauses == [*PAUSES_ONCE_WELL_S, longest, longest]
    assert (child.exit_code, child.last_end) == (-9, "it was ended by SIGKILL")


def test_good_health_forgets_what_was(rig: Rig) -> None:
    """After a while of health an end counts as the first."""
    child = rig.child("ready")
    for _ in range(3):
        os.kill(rig.until_ready(child), signal.SIGKILL)
        last = rig.until_ended(child)
    assert last == PAUSES_ONCE_WELL_S[-1]
    pid = rig.until_ready(child)
    rig.clock.advance(int((FORGET_AFTER_S + 1) * SECOND_NS))
    child.tick()  # the probe says ready, so the time counts as health
    os.kill(pid, signal.SIGKILL)
    assert rig.until_ended(child) == 0.0


def test_a_stalled_child_is_killed_and_replaced(rig: Rig) -> None:
    """A process that answers but says that no work advances."""
    child = rig.child("ready-then-stalled")
    pid = rig.until_ready(child)
    rig.until_ended(child)
    assert child.last_end == "it reports stalled: no step"
    assert start_ticks(pid) is None


def test_a_stopped_child_is_hung_only_after_its_patience(rig: Rig) -> None:
    """SIGSTOP: no answer. Within `hang_after_s` it is left alone, then killed."""
    child = rig.child("ready", Patience(0.0, 0.0, 0.1, hang_after_s=5))
    pid = rig.until_ready(child)
    os.kill(pid, signal.SIGSTOP)
    rig.clock.advance(4 * SECOND_NS)
    child.tick()
    assert (child.pid, child.restarts) == (pid, 0)
    rig.clock.advance(2 * SECOND_NS)
    child.tick()
    assert child.last_end == "it did not answer for 5 s"
    assert start_ticks(pid) is None


def test_a_child_that_takes_connections_and_says_nothing_has_the_start_deadline(rig: Rig) -> None:
    """Loading may be slow, so the start has a patience of its own."""
    child = rig.child("silent", Patience(0.0, 0.0, 0.05, hang_after_s=1, start_deadline_s=60))
    child.tick()
    rig.clock.advance(59 * SECOND_NS)
    child.tick()
    assert (child.state, child.restarts) == ("starting", 0)
    rig.clock.advance(2 * SECOND_NS)
    child.tick()
    assert child.last_end == "it did not answer for 60 s"


def test_the_whole_family_of_a_child_ends(rig: Rig) -> None:
    """What a killed child had started does not live on."""
    child = rig.child("family")
    pid = rig.until_ready(child)
    grandchild = int(child.command.log_file.read_text())
    assert start_ticks(grandchild) is not None
    os.kill(pid, signal.SIGKILL)
    rig.until(child, lambda: child.restarts == 1)
    rig.until(child, lambda: start_ticks(grandchild) is None)


def test_a_child_that_ignores_sigterm_is_killed_after_the_stop_deadline(rig: Rig) -> None:
    """`wait` returns, and the process is gone."""
    child = rig.child("stubborn")
    pid = rig.until_ready(child)
    child.ask_to_stop()
    child.wait()
    assert start_ticks(pid) is None
    assert (child.state, child.pid) == ("stopped", None)


def test_a_child_has_its_stop_deadline_to_end(rig: Rig) -> None:
    """One that is finishing what is open is not killed meanwhile."""
    child = rig.child("slow", Patience(0.0, 0.0, stop_deadline_s=600))
    rig.until_ready(child)
    process = child._process
    child.ask_to_stop()
    child.wait()
    assert process is not None
    assert process.returncode == 7


def test_a_ready_child_is_asked_now_and_then_only(rig: Rig) -> None:
    """Between two questions lies `probe_every_s`, however often the supervisor looks."""
    child = rig.child("ready-then-stalled", Patience(5.0, 0.0, 10.0))
    rig.until_ready(child)  # the first answer
    for _ in range(2):  # the second is as good, the third says stalled
        for _ in range(10):
            child.tick()
        assert child.restarts == 0
        rig.clock.advance(6 * SECOND_NS)
    child.tick()
    assert child.last_end == "it reports stalled: no step"


def test_a_child_that_is_waited_for_in_a_hurry_still_has_a_moment(rig: Rig) -> None:
    """One that ends when asked is not killed; one that does not is, long before its deadline."""
    patient = Patience(0.0, 0.0, stop_deadline_s=600)
    for mode, code in (("slow", 7), ("stubborn", -signal.SIGKILL)):
        child = rig.child(mode, patient)
        rig.until_ready(child)
        process = child._process
        child.ask_to_stop()
        child.wait(hurry=lambda: True)
        assert process is not None
        assert process.returncode == code


@pytest.mark.parametrize(
    ("mode", "told"), [("exit-0", "it exited with 0"), ("exit-3", "it exited with 3")]
)
def test_an_end_is_told_by_its_code(rig: Rig, mode: str, told: str) -> None:
    """A child has no business ending, so 0 is an end like any other."""
    child = rig.child(mode)
    rig.until_ended(child)
    assert child.last_end == told


def test_the_log_of_the_life_before_is_kept(rig: Rig) -> None:
    """What a dead child said can be read while the next one runs."""
    child = rig.child("exit-1")
    rig.until_ended(child)
    assert "no good" in (rig.folder / "log.1").read_text()


def test_a_long_log_begins_anew_while_the_process_runs(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that runs for months fills no disk; what it says next starts at the top."""
    monkeypatch.setattr("bedplate.orchestrator.child.LOG_BYTES", 1000)
    child = rig.child("ready")
    pid = rig.until_ready(child)
    log = rig.folder / "log"
    with log.open("ab") as words:
        words.write(b"x" * 2000)
    rig.until(child, lambda: log.stat().st_size < 1000)
    assert (rig.folder / "log.1").read_bytes().endswith(b"x" * 2000)
    assert child.pid == pid
    flags = Path(f"/proc/{pid}/fdinfo/1").read_text().split("flags:")[1].split()[0]
    assert int(flags, 8) & os.O_APPEND, "it would go on at its old place, behind a hole"


def test_a_long_log_makes_room_on_a_full_disk(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its copy does not fit: the words go, the service stays."""
    monkeypatch.setattr("bedplate.orchestrator.child.LOG_BYTES", 1000)

    def full(source: Path, target: Path) -> None:
        target.write_bytes(b"a part")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("shutil.copyfile", full)
    child = rig.child("ready")
    rig.until_ready(child)
    log = rig.folder / "log"
    with log.open("ab") as words:
        words.write(b"x" * 2000)
    rig.until(child, lambda: log.stat().st_size < 1000)
    assert not (rig.folder / "log.1").exists()


def test_a_log_that_cannot_be_written_costs_the_log_only(rig: Rig) -> None:
    """A full disk, or a folder that is gone: the process runs all the same."""
    child = rig.child("ready")
    gone = dataclasses.replace(child.command, log_file=rig.folder / "gone" / "log")
    child.command = gone
    rig.until_ready(child)


@pytest.mark.parametrize("broken", ["os.replace", "pathlib.Path.open"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_full_disk_keeps_no_child_down(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, broken: str, number: int
) -> None:
    """A restart on a disk that is full or read-only: what served before serves again."""
    child = rig.child("ready")
    os.kill(rig.until_ready(child), signal.SIGKILL)
    rig.until(child, lambda: child.restarts == 1)

    def refuse(*arguments: object, **named: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(broken, refuse)
    rig.until_ready(child)
    assert (child.restarts, child.last_end) == (1, "it was ended by SIGKILL")


def test_a_program_that_cannot_be_started_is_tried_again(rig: Rig) -> None:
    """No memory for a process, or no such file: with pauses, like any other end."""
    child = rig.child("ready")
    child.command = dataclasses.replace(child.command, arguments=["/nowhere/python"])
    child.tick()
    assert (child.state, child.pid, child.exit_code) == ("restarting", None, None)
    assert child.last_end == "it could not be started: No such file or directory"
    child.tick()  # at once the first time
    assert child.restarts == 2
    child.tick()
    assert child.restarts == 2
