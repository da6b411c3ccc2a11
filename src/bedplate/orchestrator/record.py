"""The record of a running platform: who supervises, and where it answers.

A process is known by its id and its start time together, since ids come round
again. The supervisor holds a lock on the run folder for as long as it lives, so
two platforms never share one data directory.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from bedplate.core.files import replace
from bedplate.core.paths import make_private, run_dir

FILE = "platform.json"
SCHEMA = "bedplate.platform/1"


@dataclass(frozen=True)
class Record:
    """What a running platform says of itself. `start_ticks` is the kernel's, since boot."""

    schema: str
    pid: int
    start_ticks: int
    url: str
    model: str
    started_ns: int

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


def remove(data: Path) -> None:
    """Withdraw the record; fine when there is none."""
    (run_dir(data) / FILE).unlink(missing_ok=True)


def read(data: Path) -> Record | None:
    """The record of the platform that runs now, or None."""
    try:
        found = json.loads((run_dir(data) / FILE).read_text())
        record = Record(**{name: found[name] for name in Record.__dataclass_fields__})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return record if record.schema == SCHEMA and record.alive else None


def lock(data: Path) -> IO[str] | None:
    """The lock of this data directory, held until the file is closed; None when taken."""
    make_private(data)
    folder = make_private(run_dir(data))
    file = open(folder / "lock", "w")  # noqa: SIM115 (held by the caller)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    os.set_inheritable(file.fileno(), False)
    return file
