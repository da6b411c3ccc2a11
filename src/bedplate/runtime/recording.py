"""What is known of a recorded trace: the `jobs.json` beside it."""

from __future__ import annotations

from pathlib import Path

import msgspec

MOST_BYTES = 16 << 20


class Job(msgspec.Struct, frozen=True):
    """One recorded job. Bytes; the peaks are the recorded allocator's own."""

    job: str
    what: str = ""
    torch: str = ""
    device: str = ""
    peak_requested_bytes: int = 0
    peak_reserved_bytes: int = 0
    peak_reserved_expandable_bytes: int = 0


def find_job(trace: str | Path) -> Job | None:
    """The job that a trace `NAME.csv.xz` was recorded from, or None."""
    path = Path(trace)
    beside = path.parent / "jobs.json"
    try:
        if not beside.is_file() or beside.stat().st_size > MOST_BYTES:
            return None
        jobs = msgspec.json.decode(beside.read_bytes(), type=list[Job])
    except (OSError, msgspec.MsgspecError):
        return None
    name = path.name.partition(".")[0]
    return next((job for job in jobs if job.job == name), None)
