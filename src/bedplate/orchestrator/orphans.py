"""What a killed supervisor leaves for a moment: its children, until they end by themselves.

They see to that (`core.parent`); a new start only waits, so that it finds port and
socket free instead of telling the user of a process that is already going.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from bedplate.orchestrator import record
from bedplate.orchestrator.launch import Note

DEADLINE_S = 5.0  # they take less than one, see `cli.gateway`
_POLL_S = 0.02


@dataclass(frozen=True)
class Orphan:
    """A part of a platform whose supervisor is gone."""

    name: str
    pid: int


def orphans(data: Path) -> list[Orphan]:
    """The children that still run on `data` though no supervisor does."""
    if record.read(data) is not None:
        return []
    known = [Orphan(child["name"], child["pid"]) for child in record.children(data)]
    return [orphan for orphan in known if orphan.pid and _serves(orphan.pid, data)]


def wait_for_orphans(data: Path, on_note: Note, deadline_s: float = DEADLINE_S) -> None:
    """Wait until none is left or the deadline is over; `on_note` hears of whom."""
    until, told = time.monotonic() + deadline_s, ""
    while (left := orphans(data)) and time.monotonic() < until:
        names = " and ".join(f"the {orphan.name}, process {orphan.pid}," for orphan in left)
        if not told:
            told = f"waiting until {names} of a platform that was killed ends"
            on_note(told)
        time.sleep(_POLL_S)


def _serves(pid: int, data: Path) -> bool:
    """Whether the process runs and was started for `data`: ids come round again."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return record.start_ticks(pid) is not None and str(data).encode() in words
