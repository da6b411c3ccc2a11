"""The record of a running platform: who supervises, and where it answers.

A process is known by its id and its start time together, since ids come round
again. The supervisor holds a lock on the run folder for as long as it lives, so
two platforms never share one data directory.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from bedplate.core.command import quoted
from bedplate.core.files import replace
from bedplate.core.paths import make_private, run_dir
from bedplate.orchestrator.errors import NotRunning

FILE = "platform.json"
STATUS_FILE = "status.json"
INTERNAL_KEY_FILE = "internal.key"
ENGINE_SOCKET = "engine.sock"
LOCK_FILE = "lock"
SCHEMA = "bedplate.platform/1"


@dataclass(frozen=True)
class Record:
    """What a running platform says of itself. `start_ticks` is the kernel's, since boot.

    `source` is the model as it was given, a known name or an absolute path, and `host`
    where the gateway listens; both are empty in the record of an older version.
    `stopping` is set from the moment it was asked to end.
    """

    schema: str
    pid: int
    start_ticks: int
    url: str
    model: str
    started_ns: int
    source: str = ""
    host: str = ""
    stopping: bool = False

    @property
    def reachable_host(self) -> str:
        """The host of the URL, without an IPv6 address's brackets."""
        return self.url.removeprefix("http://").rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port of the URL."""
        return int(self.url.rpartition(":")[2])

    def ending(self) -> Record:
        """The same platform, on its way out."""
        return dataclasses.replace(self, stopping=True)

    @property
    def alive(self) -> bool:
        """Whether that very process still runs."""
        return start_ticks(self.pid) == self.start_ticks


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when it is gone.

    Source: proc(5), field 22 of /proc/<pid>/stat, counted after the name's last
    parenthesis. A zombie counts as gone.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def write(data: Path, record: Record) -> None:
    """Publish the record."""
    replace(run_dir(data) / FILE, json.dumps(asdict(record)) + "\n", mode=0o600, durable=False)


def read(data: Path) -> Record | None:
    """The record of the platform that runs now, or None."""
    try:
        found = json.loads((run_dir(data) / FILE).read_text())
        record = Record(**{n: found[n] for n in Record.__dataclass_fields__ if n in found})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return record if record.schema == SCHEMA and record.alive else None


def lock(data: Path) -> IO[str] | None:
    """The lock of this data directory, until `release`; None when another holds it."""
    make_private(data)
    path = make_private(run_dir(data)) / LOCK_FILE
    while True:
        file = open(path, "w")  # noqa: SIM115 (held by the caller)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return None
        if _is_at(file, path):
            return file
        file.close()  # its last holder removed it between our two calls


def _is_at(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def release(data: Path, held: IO[str]) -> None:
    """Remove all that a running platform keeps in the run folder, logs apart, then unlock."""
    for name in (FILE, STATUS_FILE, INTERNAL_KEY_FILE, ENGINE_SOCKET, LOCK_FILE):
        (run_dir(data) / name).unlink(missing_ok=True)
    held.close()


def sweep(data: Path) -> None:
    """Remove what a killed platform left behind; nothing while one runs."""
    if run_dir(data).is_dir() and (held := lock(data)) is not None:
        release(data, held)


def internal_key(data: Path) -> str:
    """The key of the platform's own processes. Raises `NotRunning`."""
    try:
        return (run_dir(data) / INTERNAL_KEY_FILE).read_text()
    except OSError as cause:
        raise not_running(data) from cause


def not_running(data: Path) -> NotRunning:
    """The error that nothing runs on this data directory."""
    return NotRunning(f"no platform runs on {data}", remedy=f"start one with {quoted('up', data)}")


def children(data: Path) -> list[dict[str, Any]]:
    """What the supervisor last published of its children; empty at the very start."""
    try:
        return list(json.loads((run_dir(data) / STATUS_FILE).read_text())["children"])
    except (OSError, ValueError, KeyError, TypeError):
        return []
