"""The platform on this machine, as its owner sees it: up, status, down.

    with Platform.up(data_dir="./plate") as plate:
        print(plate.base_url, plate.key)

`up` starts a supervisor in a process of its own and waits until a request would
be answered. It is safe to repeat: a platform that already runs is returned.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bedplate.core.errors import EXIT_DONE, UsageError
from bedplate.core.modelname import model_name
from bedplate.core.paths import data_dir as default_data_dir
from bedplate.core.paths import run_dir
from bedplate.orchestrator import record
from bedplate.orchestrator.config import GatewayConfig
from bedplate.orchestrator.launch import Launch, Note, started, wait_gone, wait_ready
from bedplate.orchestrator.load import read_load
from bedplate.orchestrator.orphans import wait_for_orphans
from bedplate.orchestrator.startkey import start_key
from bedplate.orchestrator.supervisor import STATUS_SCHEMA
from bedplate.orchestrator.wanted import Wanted, absolute
from bedplate.serving.api import DEFAULT_MODEL, find_model

STOP_DEADLINE_S = 60.0
_POLL_S = 0.05
_LONGEST_SOCKET_PATH = 107  # bytes; unix(7), sun_path without its final zero


@dataclass(frozen=True)
class Platform:
    """A running platform. `key` is the API key, only when `up` made it just now."""

    data: Path
    url: str
    model: str
    key: str | None
    started_here: bool
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False, compare=False)

    @property
    def base_url(self) -> str:
        """The base URL for OpenAI clients."""
        return f"{self.url}/v1"

    @property
    def internal_key(self) -> str:
        """The key of this machine's own commands; `NotRunning` when it stopped."""
        return record.internal_key(self.data)

    @classmethod
    def up(
        cls,
        model: str | None = None,
        *,
        data_dir: str | Path | None = None,
        host: str | None = None,
        port: int | None = None,
        engine_flags: Sequence[str] = (),
        hang_after_s: float = 10.0,
        parent: int | None = None,
        keep_key: bool = True,
        on_note: Note = lambda text: None,
    ) -> Platform:
        """Start the platform, or find the one that runs on this data directory.

        Without `model`, `host` or `port` whatever runs is found, else the default ones are
        taken; port 0 is a free one. With `parent` the platform ends when that process does.
        Without `keep_key` no API key is made: only this machine's own commands may ask,
        unless one is in the environment. Raises what `find_model` does for a bad model,
        `AlreadyRunning` when another model, host or port is served, `EnvironmentLacks` for
        a port in use or a folder that cannot be written, and `StartFailed` or one of its
        kinds with the last words of the part that did not come up.
        """
        from bedplate.serving.api import Address  # slow to load; other calls need none

        data = default_data_dir(str(data_dir) if data_dir else None)
        wanted = Wanted(model, host, port)
        running = record.read(data)
        if running is not None and running.stopping:
            on_note(f"waiting until {running.model}, which is stopping, has ended")
            wait_gone(running, STOP_DEADLINE_S)
        elif running is not None:
            return cls._found(data, running, wanted, on_note)
        model = model or DEFAULT_MODEL
        find_model(model)
        _check_socket_path(data)
        wait_for_orphans(data, on_note)
        host = host or GatewayConfig.host
        with contextlib.closing(
            Address(host, GatewayConfig.port if port is None else port).bind()
        ) as listener:
            # Taken by someone else: say so before anything starts.
            port = listener.getsockname()[1]
        with start_key(data, keep_key, on_note) as key:
            if key.faster is not None:
                return cls._found(data, key.faster, wanted, on_note)
            launch = Launch(
                data,
                absolute(model),
                host,
                port,
                engine_flags,
                hang_after_s,
                parent,
                key.environment,
            )
            # Nothing has refused it so far.
            on_note(f"starting {model_name(launch.model)}")
            with started(launch) as process:
                found = wait_ready(data, process, on_note)
            faster = found.pid != process.pid  # another start was
            made = key.in_force(found.url) if faster else key.made
        if faster:
            return replace(cls._found(data, found, wanted, on_note), key=made)
        return cls(data, found.url, found.model, made, True, process)

    @classmethod
    def _found(cls, data: Path, running: record.Record, wanted: Wanted, on_note: Note) -> Platform:
        wanted.check(data, running)
        running = wait_ready(data, None, on_note)
        return cls(data, running.url, running.model, None, started_here=False)

    @classmethod
    def find(cls, data_dir: str | Path | None = None) -> Platform:
        """The platform that runs on this data directory. Raises `NotRunning`."""
        data = default_data_dir(str(data_dir) if data_dir else None)
        running = record.read(data)
        if running is None:
            raise record.not_running(data)
        return cls(data, running.url, running.model, None, started_here=False)

    @staticmethod
    def runs(data_dir: str | Path | None = None) -> bool:
        """Whether a platform runs on this data directory, ready or not; none that is stopping."""
        running = record.read(default_data_dir(str(data_dir) if data_dir else None))
        return running is not None and not running.stopping

    def status(self) -> dict[str, Any]:
        """State of every part and what the engine is doing; parts may be missing at the start.

        `engine` is an `EngineLoad`, or None with `engine_reason`.
        """
        running = record.read(self.data)
        children = [
            {**c, "memory_bytes": _resident_bytes(c["pid"])} for c in record.children(self.data)
        ]
        load = read_load(self.url, self.internal_key) if running else None
        return {
            "schema": STATUS_SCHEMA,
            "url": self.url,
            "model": self.model,
            "started_ns": running.started_ns if running else None,
            "children": children,
            "engine": load,
            "engine_reason": None if load else "it gives no metrics now",
        }

    def down(self) -> None:
        """Stop the platform and wait until it is gone. Fine when it already is."""
        running = record.read(self.data)
        if running is None:
            record.sweep(self.data)
        else:
            self._stop(running)
        self._collect()

    def _stop(self, running: record.Record) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(running.pid, signal.SIGTERM)
        wait_gone(running, STOP_DEADLINE_S)

    def wait(self) -> bool:
        """Wait until the platform ends; whether it was asked to, as far as is known here."""
        while record.read(self.data) is not None:
            time.sleep(_POLL_S)
        return self._collect() == EXIT_DONE

    def _collect(self) -> int:
        """The supervisor's exit code; collected, so that no zombie stays."""
        return self._process.wait(STOP_DEADLINE_S) if self._process else EXIT_DONE

    def __enter__(self) -> Platform:
        return self

    def __exit__(self, *error: object) -> None:
        if self.started_here:
            self.down()


def _resident_bytes(pid: int | None) -> int | None:
    """Resident memory of a process, shared pages included; None when it is gone.

    Source: proc(5), field 2 of /proc/<pid>/statm, in pages.
    """
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def _check_socket_path(data: Path) -> None:
    path = run_dir(data) / record.ENGINE_SOCKET
    over = len(os.fsencode(path)) - _LONGEST_SOCKET_PATH
    if over > 0:
        raise UsageError(
            f"the data directory {data} is {over} bytes too long for sockets in it",
            code="orchestrator.data_dir",
            remedy="choose a shorter one with --data-dir or BEDPLATE_DATA_DIR",
        )
