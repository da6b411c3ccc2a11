"""Starting the supervisor in a process of its own, and waiting until a request would be served.

A part that says the fault is its input's or the machine's (exit codes 2 and 3) is
believed at once; one that dies otherwise gets a second and a third try. Whatever
goes wrong, the supervisor is stopped before the error is raised.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bedplate.core.errors import EXIT_DONE, EXIT_ENVIRONMENT, EXIT_USAGE
from bedplate.core.paths import make_private, run_dir, unusable
from bedplate.core.python import PYTHON
from bedplate.orchestrator import record
from bedplate.orchestrator.errors import StartFailed, StartLacks, StartRefused, StopFailed
from bedplate.orchestrator.interrupt import held_back

START_DEADLINE_S = 300.0
LOG_FILE = "supervisor.log"
_POLL_S = 0.05
_GIVE_UP_AFTER_RESTARTS = 2
_BELIEVED: dict[int, type[StartFailed]] = {EXIT_USAGE: StartRefused, EXIT_ENVIRONMENT: StartLacks}
# How a verb ends its errors: see `cli.main`.
_SENTENCE = re.compile(r"^bedplate (?:serve|gateway|supervise): (.*)$", re.MULTILINE)

Note = Callable[[str], None]


@dataclass(frozen=True)
class Launch:
    """What to start. `model` is a known name or an absolute path; `environment` is given
    to the platform beside this process's own."""

    data: Path
    model: str
    host: str
    port: int
    engine_flags: Sequence[str] = ()
    hang_after_s: float = 10.0
    parent: int | None = None
    environment: Mapping[str, str] | None = None

    def start(self) -> subprocess.Popen[bytes]:
        """The supervisor's process; it ends with `parent` if that is given.

        Raises `FolderUnusable` when its log cannot be made, `StartLacks` when the machine
        has no room for a process; nothing runs then.
        """
        arguments = [*PYTHON, "-m", "bedplate.cli", "supervise", self.model]
        arguments += ["--data-dir", str(self.data), "--host", self.host, "--port", str(self.port)]
        arguments += ["--hang-after", str(self.hang_after_s)]
        if self.parent is not None:
            arguments += ["--parent", str(self.parent)]
        arguments += [f"--engine-flag={flag}" for flag in self.engine_flags]
        environment = {**os.environ, **(self.environment or {})}
        folder = make_private(run_dir(self.data))
        try:
            words = (folder / LOG_FILE).open("wb")
        except OSError as cause:
            raise unusable(folder, cause) from cause
        with words:
            try:
                return subprocess.Popen(
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=words,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    env=environment,
                )
            except OSError as cause:
                raise StartLacks(f"no process can be started: {cause.strerror}") from cause


@contextlib.contextmanager
def started(launch: Launch) -> Iterator[subprocess.Popen[bytes]]:
    """The supervisor's process, stopped when the block fails, however early that is.

    Raises what `Launch.start` does.
    """
    process: subprocess.Popen[bytes] | None = None
    try:
        with held_back():
            process = launch.start()
        yield process
    except BaseException:
        _stop(process)
        raise


def _stop(process: subprocess.Popen[bytes] | None) -> None:
    if process is not None and process.poll() is None:
        process.terminate()
        process.wait()


def wait_ready(
    data: Path,
    process: subprocess.Popen[bytes] | None,
    on_note: Note,
    deadline_s: float = START_DEADLINE_S,
) -> record.Record:
    """Wait until the platform on `data` answers; its record.

    That may be another's: two starts at once end as one platform, and without a
    `process` of ours it is. Raises `StartFailed` or one of its kinds with the last
    words of the part at fault, after `process` has been stopped.
    """
    until = time.monotonic() + deadline_s
    noted = ""
    try:
        with httpx.Client(timeout=2.0, trust_env=False) as client:
            while time.monotonic() < until:
                ended = process.poll() if process else None
                running = record.read(data)
                if running is not None and (
                    process is None or ended is not None or running.pid == process.pid
                ):
                    children = record.children(data)
                    if _ready(client, running.url, children):
                        return running
                    _check(data, children)
                    text = f"starting {running.model}" + _trouble(children)
                    if text != noted:
                        on_note(text)
                        noted = text
                elif ended == EXIT_DONE or process is None:
                    raise StartFailed("the platform was stopped while it was starting")
                elif ended is not None:
                    words = (run_dir(data) / LOG_FILE).read_text("utf-8", "replace")
                    raise failure(sentence(words) or "the supervisor ended at once", ended)
                time.sleep(_POLL_S)
        raise StartFailed(
            f"the platform was not ready within {deadline_s:g} s", remedy=_see_logs(data)
        )
    except BaseException:
        _stop(process)
        raise


def wait_gone(running: record.Record, deadline_s: float) -> None:
    """Wait until a platform has ended. Raises `StopFailed`."""
    until = time.monotonic() + deadline_s
    while running.alive and time.monotonic() < until:
        time.sleep(_POLL_S)
    if running.alive:
        raise StopFailed(
            f"the platform, process {running.pid}, did not stop within {deadline_s:g} s"
        )


def _ready(client: httpx.Client, url: str, children: Sequence[dict[str, Any]]) -> bool:
    """Whether the supervisor says so of every part, and the gateway of a request."""
    if not children or any(child["state"] != "ready" for child in children):
        return False
    try:
        return client.get(f"{url}/ready").status_code == 200
    except httpx.HTTPError:
        return False


def _check(data: Path, children: Sequence[dict[str, Any]]) -> None:
    """Raise when a part cannot start, or keeps ending before it is well."""
    for child in children:
        if child["was_well"] or child["restarts"] == 0:
            continue
        told = sentence(child["last_words"])
        text = f"the {child['name']} does not start: {told or child['last_end']}"
        if child["exit_code"] in _BELIEVED:
            raise failure(text, child["exit_code"])
        if child["restarts"] > _GIVE_UP_AFTER_RESTARTS:
            raise StartFailed(text, remedy=_see_logs(data))


def failure(text: str, exit_code: int) -> StartFailed:
    """The error that gives a part's own exit code on."""
    return _BELIEVED.get(exit_code, StartFailed)(text)


def _trouble(children: Sequence[dict[str, Any]]) -> str:
    ended = [c for c in children if c["restarts"]]
    return "".join(f"; the {c['name']} is started again: {c['last_end']}" for c in ended)


def _see_logs(data: Path) -> str:
    return f"the logs are in {run_dir(data)}"


def sentence(words: str) -> str:
    """The error that a verb ended with, else the last line of what it printed."""
    if found := _SENTENCE.findall(words):
        return str(found[-1])
    lines = words.strip().splitlines()
    return lines[-1] if lines else ""
