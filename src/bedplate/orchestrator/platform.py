"""The platform on this machine, as its owner sees it: up, status, down.

    with Platform.up(data_dir="./plate") as plate:
        print(plate.base_url, plate.key)

`up` starts a supervisor in a process of its own and waits until a request would
be answered. It is safe to repeat: a platform that already runs is returned.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bedplate.core import keyfile
from bedplate.core.paths import data_dir as default_data_dir
from bedplate.core.paths import run_dir
from bedplate.orchestrator import record
from bedplate.orchestrator.errors import NotRunning, StartFailed
from bedplate.orchestrator.supervisor import INTERNAL_KEY_FILE, STATUS_FILE
from bedplate.serving.api import DEFAULT_MODEL, Address, find_model

START_DEADLINE_S = 300.0
STOP_DEADLINE_S = 60.0
_POLL_S = 0.05
_GIVE_UP_AFTER_RESTARTS = 2

Note = Callable[[str], None]


@dataclass(frozen=True)
class Platform:
    """A running platform. `key` is the API key, only when `up` made it just now."""

    data: Path
    url: str
    model: str
    key: str | None
    started_here: bool

    @property
    def base_url(self) -> str:
        """The base URL for OpenAI clients."""
        return f"{self.url}/v1"

    @property
    def internal_key(self) -> str:
        """The key of this machine's own commands; `NotRunning` when it stopped."""
        return read_internal_key(self.data)

    @classmethod
    def up(
        cls,
        model: str = DEFAULT_MODEL,
        *,
        data_dir: str | Path | None = None,
        host: str = "127.0.0.1",
        port: int = 8000,
        engine_flags: Sequence[str] = (),
        parent: int | None = None,
        on_note: Note = lambda text: None,
    ) -> Platform:
        """Start the platform, or find the one that runs on this data directory.

        With `parent` the platform ends when that process does. Raises what
        `find_model` does for a bad model, `EnvironmentLacks` for a port in use, and
        `StartFailed` with the last words of the part that did not come up.
        """
        data = default_data_dir(str(data_dir) if data_dir else None)
        running = record.read(data)
        if running is not None:
            return cls(data, running.url, running.model, None, started_here=False)
        find_model(model)
        with contextlib.closing(Address(host, port).bind()):
            pass  # taken by someone else: say so before anything starts
        _, key = keyfile.load_or_make(data)
        try:
            process = _start_supervisor(data, model, host, port, engine_flags, parent)
            _wait_ready(data, process, on_note)
            found = record.read(data)
            if found is None:
                raise StartFailed("the platform stopped while it was starting")
        except BaseException:
            if key is not None:  # nobody has seen it, so nobody could ever use it
                keyfile.forget(data)
            raise
        return cls(data, found.url, found.model, key, started_here=True)

    @classmethod
    def find(cls, data_dir: str | Path | None = None) -> Platform:
        """The platform that runs on this data directory. Raises `NotRunning`."""
        data = default_data_dir(str(data_dir) if data_dir else None)
        running = record.read(data)
        if running is None:
            raise NotRunning(f"no platform runs on {data}", remedy="start one with `bedplate up`")
        return cls(data, running.url, running.model, None, started_here=False)

    def status(self) -> dict[str, Any]:
        """State of every part, from the supervisor's file; parts may be missing at the start."""
        try:
            found: dict[str, Any] = json.loads((run_dir(self.data) / STATUS_FILE).read_text())
        except (OSError, ValueError):
            found = {"children": []}
        return {"url": self.url, "model": self.model, "children": found["children"]}

    def down(self) -> None:
        """Stop the platform and wait until it is gone. Fine when it already is."""
        running = record.read(self.data)
        if running is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(running.pid, signal.SIGTERM)
        until = time.monotonic() + STOP_DEADLINE_S
        while running.alive and time.monotonic() < until:
            time.sleep(_POLL_S)
        if running.alive:
            raise StartFailed(
                f"the platform, process {running.pid}, did not stop within {STOP_DEADLINE_S:g} s"
            )

    def wait(self) -> None:
        """Wait until the platform ends."""
        while (running := record.read(self.data)) is not None and running.alive:
            time.sleep(_POLL_S)

    def __enter__(self) -> Platform:
        return self

    def __exit__(self, *error: object) -> None:
        if self.started_here:
            self.down()


def read_internal_key(data: Path) -> str:
    """The key in the run folder. Raises `NotRunning`."""
    try:
        return (run_dir(data) / INTERNAL_KEY_FILE).read_text()
    except OSError as cause:
        raise NotRunning(
            f"no platform runs on {data}", remedy="start one with `bedplate up`"
        ) from cause


def _start_supervisor(
    data: Path, model: str, host: str, port: int, flags: Sequence[str], parent: int | None
) -> subprocess.Popen[bytes]:
    arguments = [sys.executable, "-m", "bedplate.cli", "supervise", model]
    arguments += ["--data-dir", str(data), "--host", host, "--port", str(port)]
    if parent is not None:
        arguments += ["--parent", str(parent)]
    run_dir(data).mkdir(mode=0o700, exist_ok=True)
    with (run_dir(data) / "supervisor.log").open("wb") as words:
        return subprocess.Popen(
            [*arguments, *(["--", *flags] if flags else [])],
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _wait_ready(data: Path, process: subprocess.Popen[bytes], on_note: Note) -> None:
    until = time.monotonic() + START_DEADLINE_S
    noted = ""
    try:
        while time.monotonic() < until:
            if process.poll() is not None:
                words = (run_dir(data) / "supervisor.log").read_text("utf-8", "replace").strip()
                raise StartFailed(_last_line(words) or "the supervisor ended at once")
            running = record.read(data)
            if running is not None:
                if _ready(running.url):
                    return
                _check_children(data)
                text = f"starting {running.model}"
                if text != noted:
                    on_note(text)
                    noted = text
            time.sleep(_POLL_S)
        raise StartFailed(f"the platform was not ready within {START_DEADLINE_S:g} s")
    except BaseException:
        if process.poll() is None:
            process.terminate()
            process.wait()
        raise


def _ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/ready", timeout=2.0, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def _check_children(data: Path) -> None:
    """Raise `StartFailed` when a part keeps ending before it is well."""
    try:
        children = json.loads((run_dir(data) / STATUS_FILE).read_text())["children"]
    except (OSError, ValueError, KeyError):
        return
    for child in children:
        if child["last_words"] and child["restarts"] >= _GIVE_UP_AFTER_RESTARTS:
            raise StartFailed(
                f"the {child['name']} does not start: {_last_line(child['last_words'])}",
                remedy=f"its whole log is in {run_dir(data)}",
            )


def _last_line(text: str) -> str:
    return text.splitlines()[-1] if text else ""
