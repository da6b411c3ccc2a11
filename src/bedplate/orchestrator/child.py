"""One supervised process: started, probed, started again.

A child is unwell when it exited, or when its health route does not answer, or
says `stalled`, for as long as `Patience` allows. Then it is killed with all of
its process group and started again. One that had been well comes back at once,
or within a second when it keeps dying; one that never got well is tried with
growing pauses.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bedplate.core.clock import Clock, RealClock
from bedplate.core.logging import get_logger
from bedplate.orchestrator.probe import Endpoint

FORGET_AFTER_S = 5.0  # of good health; earlier ends no longer count then
PAUSES_S = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
# People wait for one that served before, so it never pauses for long.
PAUSES_ONCE_WELL_S = (0.0, 0.5, 1.0)
_LAST_WORDS_BYTES = 4096
LOG_BYTES = 32 << 20  # of a running process; what was before is kept once
_STOP_POLL_S = 0.05
_HURRY_S = 1.0

log = get_logger("orchestrator")


@dataclass(frozen=True)
class Patience:
    """How long a child may take, in seconds."""

    probe_every_s: float = 0.5
    probe_start_every_s: float = 0.1  # until it is ready for the first time
    probe_timeout_s: float = 2.0
    hang_after_s: float = 10.0
    start_deadline_s: float = 300.0  # a large model on a slow disk
    stop_deadline_s: float = 25.0  # its own drain time and a little more


@dataclass(frozen=True)
class Command:
    """How to run a child, and where to ask for its health."""

    name: str
    arguments: Sequence[str]
    log_file: Path
    health: Endpoint


class Child:
    """A process under supervision. `tick` does everything; it never blocks for long.

    `state` is stopped, starting, ready or restarting; `reason` why it is not ready,
    `last_end` why it ended the last time and `exit_code` with which code (negative: a
    signal), `since_ns` the Unix time of the last change of state.
    """

    def __init__(
        self, command: Command, patience: Patience | None = None, clock: Clock | None = None
    ) -> None:
        self.command = command
        self.patience = patience or Patience()
        self._clock = clock or RealClock()
        self.state, self.reason, self.since_ns = "stopped", "", self._clock.wall_ns()
        self.last_end, self.last_words = "", ""
        self.exit_code: int | None = None
        self.restarts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._failures = 0
        self._well_since: float | None = None
        self._start_at = self._started = self._last_well = self._next_probe = self._now()

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._process.pid if self._process else None

    @property
    def was_well(self) -> bool:
        """Whether the process that runs now, or ran last, was ever ready."""
        return self._well_since is not None

    def _now(self) -> float:
        return self._clock.monotonic_ns() / 1e9

    def start(self) -> None:
        """Start the process now; its log begins anew, the one before is kept beside."""
        self._started = self._last_well = self._next_probe = self._now()
        self._well_since = None
        with self._new_log() as words:
            try:
                self._process = subprocess.Popen(
                    self.command.arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=words,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as cause:
                self._try_again(None, f"it could not be started: {cause.strerror}")
                return
        self._enter("starting")
        log.info("child_started", child=self.command.name, pid=self._process.pid)

    def _new_log(self) -> IO[bytes]:
        """The log file, emptied; a full disk costs the log, not the process."""
        file = self.command.log_file
        try:
            if file.exists():
                os.replace(file, file.with_name(file.name + ".1"))
            return file.open("ab")  # at its end, also after `_trim_log`
        except OSError as cause:
            log.warning("no_log", message=str(cause), child=self.command.name)
            return open(os.devnull, "wb")

    def _trim_log(self) -> None:
        """Begin the log anew when it is long, the one before is kept beside.

        Copied and emptied, since the process holds it open: what it writes in between
        is lost.
        """
        file = self.command.log_file
        before = file.with_name(file.name + ".1")
        with contextlib.suppress(OSError):
            if file.stat().st_size <= LOG_BYTES:
                return
            try:
                shutil.copyfile(file, before)
            except OSError:  # a full disk needs the room more than the words
                before.unlink(missing_ok=True)
            os.truncate(file, 0)

    def tick(self) -> None:
        """Look after the process once."""
        now = self._now()
        if self._process is None:
            if now >= self._start_at:
                self.start()
            return
        code = self._process.poll()
        if code is not None:
            self._ended(code, _exit_text(code))
        elif now >= self._next_probe:
            self._probe()
            self._trim_log()
            patience = self.patience
            pause = patience.probe_every_s if self.was_well else patience.probe_start_every_s
            self._next_probe = now + pause

    def _probe(self) -> None:
        health = self.command.health.ask(self.patience.probe_timeout_s)
        now = self._now()
        if health is not None and health.get("state") in ("ready", "draining"):
            self._last_well = now
            if not self.was_well:
                self._well_since = now
                self._enter("ready")
                took = round(now - self._started, 3)
                log.info("child_ready", child=self.command.name, after_s=took)
            return
        allowed = self.patience.hang_after_s if self.was_well else self.patience.start_deadline_s
        if health is not None and health.get("state") in ("stalled", "failed"):
            self._kill(f"it reports {health['state']}: {health.get('reason')}")
        elif now - self._last_well > allowed:
            self._kill(f"it did not answer for {allowed:g} s")

    def _kill(self, reason: str) -> None:
        assert self._process is not None
        self._end_group()
        self._ended(self._process.wait(), reason)

    def _ended(self, code: int, reason: str) -> None:
        self._end_group()
        self._process = None
        self.last_words = self._read_words()
        self._try_again(code, reason)

    def _try_again(self, code: int | None, reason: str) -> None:
        self.exit_code, self.last_end = code, reason
        now = self._now()
        if self._well_since is not None and now - self._well_since > FORGET_AFTER_S:
            self._failures = 0
        pauses = PAUSES_ONCE_WELL_S if self.was_well else PAUSES_S
        pause = pauses[min(self._failures, len(pauses) - 1)]
        self._failures += 1
        self.restarts += 1
        self._start_at = now + pause
        self._enter("restarting", reason)
        log.warning("child_ended", message=reason, child=self.command.name, pause_s=pause)

    def _read_words(self) -> str:
        try:
            with self.command.log_file.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _LAST_WORDS_BYTES))
                return file.read().decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def ask_to_stop(self) -> None:
        """SIGTERM; `wait` must follow."""
        if self._process is not None:
            self._process.terminate()

    def wait(self, hurry: Callable[[], bool] = lambda: False) -> None:
        """Wait for the end until the stop deadline, then kill what is left.

        `hurry()` leaves it `_HURRY_S`, enough to end what is open with an error.
        """
        if self._process is not None:
            begun, deadline = time.monotonic(), self.patience.stop_deadline_s
            while self._process.poll() is None and time.monotonic() - begun < deadline:
                if hurry():
                    begun, deadline, hurry = time.monotonic(), _HURRY_S, lambda: False
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_STOP_POLL_S)
            self._end_group()
            self._process.wait()
            self._process = None
        self._enter("stopped")

    def _end_group(self) -> None:
        """Kill the process and those it started; each child leads a group of its own."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _enter(self, state: str, reason: str = "") -> None:
        self.state, self.reason, self.since_ns = state, reason, self._clock.wall_ns()


def _exit_text(code: int) -> str:
    if code >= 0:
        return f"it exited with {code}"
    with contextlib.suppress(ValueError):
        return f"it was ended by {signal.Signals(-code).name}"
    return f"it was ended by signal {-code}"
