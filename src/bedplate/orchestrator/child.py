"""One supervised process: started, probed, started again.

A child is unwell when it exited, or when its health route does not answer or says
`stalled` for `HANG_AFTER_S`. Then it is killed, with all its threads, and started
again: at once the first time, later with growing pauses, which a minute of good
health forgets.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bedplate.core.logging import get_logger

PROBE_EVERY_S = 0.5
PROBE_TIMEOUT_S = 2.0
HANG_AFTER_S = 10.0
START_DEADLINE_S = 300.0  # a large model on a slow disk
FORGET_AFTER_S = 60.0
PAUSES_S = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
STOP_DEADLINE_S = 30.0
_LAST_WORDS_BYTES = 4096

log = get_logger("orchestrator")


@dataclass(frozen=True)
class Command:
    """How to run and probe a child. The route is asked over `socket` or at `url`."""

    name: str
    arguments: Sequence[str]
    log_file: Path
    health_url: str
    socket: Path | None = None


class Child:
    """A process under supervision. `tick` does everything; it never blocks for long."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.state = "stopped"
        self.reason = ""
        self.restarts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._failures = 0
        self._start_at = 0.0
        self._started = self._well_since = self._last_well = self._next_probe = 0.0
        transport = httpx.HTTPTransport(uds=str(command.socket)) if command.socket else None
        self._client = httpx.Client(transport=transport, timeout=PROBE_TIMEOUT_S)

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process now."""
        with self.command.log_file.open("wb") as words:
            self._process = subprocess.Popen(
                self.command.arguments,
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started = self._last_well = time.monotonic()
        self._well_since = 0.0
        self._next_probe = 0.0
        self.state, self.reason = "starting", ""
        log.info("child_started", child=self.command.name, pid=self._process.pid)

    def tick(self) -> None:
        """Look after the process once."""
        now = time.monotonic()
        if self._process is None:
            if now >= self._start_at:
                self.start()
            return
        code = self._process.poll()
        if code is not None:
            self._ended(_exit_text(code))
        elif now >= self._next_probe:
            self._next_probe = now + PROBE_EVERY_S
            self._probe(now)

    def _probe(self, now: float) -> None:
        health = self._ask()
        if health is not None and health.get("state") in ("ready", "draining"):
            self._last_well = now
            self._well_since = self._well_since or now
            self.state, self.reason = "ready", str(health.get("reason", ""))
            if now - self._well_since > FORGET_AFTER_S:
                self._failures = 0
            return
        allowed = HANG_AFTER_S if self._well_since else START_DEADLINE_S
        if health is not None and health.get("state") in ("stalled", "failed"):
            self._kill(f"it reports {health['state']}: {health.get('reason')}")
        elif now - self._last_well > allowed:
            self._kill(f"it did not answer for {allowed:g} s")

    def _ask(self) -> dict[str, Any] | None:
        try:
            body = self._client.get(self.command.health_url).json()
        except (httpx.HTTPError, ValueError):
            return None
        return body if isinstance(body, dict) else None

    def _kill(self, reason: str) -> None:
        assert self._process is not None
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._ended(reason)

    def _ended(self, reason: str) -> None:
        self._process = None
        self.state, self.reason = "restarting", reason
        pause = PAUSES_S[min(self._failures, len(PAUSES_S) - 1)]
        self._failures += 1
        self.restarts += 1
        self._start_at = time.monotonic() + pause
        log.warning("child_ended", message=reason, child=self.command.name, pause_s=pause)

    def last_words(self) -> str:
        """The end of what the process printed."""
        try:
            with self.command.log_file.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _LAST_WORDS_BYTES))
                return file.read().decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def failed_to_start(self) -> bool:
        """Whether it ended before it was ever well."""
        return self.restarts > 0 and self._well_since == 0.0

    def ask_to_stop(self) -> None:
        """SIGTERM; `wait` must follow."""
        if self._process is not None:
            self._signal(signal.SIGTERM)

    def wait(self, deadline_s: float = STOP_DEADLINE_S) -> None:
        """Wait for the end, then kill what is left. Closes the probe."""
        if self._process is not None:
            try:
                self._process.wait(deadline_s)
            except subprocess.TimeoutExpired:
                self._signal(signal.SIGKILL)
                self._process.wait()
            self._process = None
        self.state = "stopped"
        self._client.close()

    def _signal(self, number: int) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)


def _exit_text(code: int) -> str:
    if code >= 0:
        return f"it exited with {code}"
    with contextlib.suppress(ValueError):
        return f"it was ended by {signal.Signals(-code).name}"
    return f"it was ended by signal {-code}"
