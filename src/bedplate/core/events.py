"""The event log: what happened, in order, one JSON object a line (event/1).

One process writes a log; any number may read it. Order is `seq`, not time.
A crash may leave a torn last line: opening for writing cuts it and reports
the offset, and reading stops before it. Durability is the caller's choice:
`durable=True` syncs every append (measured in milliseconds on a disk), else a
power cut may lose the last events but never their order.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from bedplate.core.clock import Clock, RealClock
from bedplate.core.errors import BedplateError, UsageError

SCHEMA = "bedplate.event/1"
_KIND = re.compile(r"[a-z]+\.[a-z0-9]+(_[a-z0-9]+)+")


class EventLogError(BedplateError):
    """The log cannot be opened, or a line inside it is not an event."""

    code = "core.event_log"


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened; `time_ns` is Unix time."""

    schema: str
    seq: int
    time_ns: int
    kind: str
    subject: str
    trace_id: str | None
    data: Mapping[str, Any]


class EventLog(Protocol):
    """Where systems record what happened."""

    def append(
        self, kind: str, subject: str, data: Mapping[str, Any], trace_id: str | None = None
    ) -> int:
        """Record one event and return its `seq`.

        `kind` is `<system>.<noun>_<past verb>`.
        """
        ...

    def read(self, from_seq: int = 0) -> Iterator[Event]:
        """The events with `seq >= from_seq`, in order."""
        ...


class FileEventLog:
    """An event log in one file, written by one process, safe for its threads.

    `torn_offset` is where a torn tail was cut on opening, or None. Raises
    `EventLogError` when another process writes the same log.
    """

    def __init__(self, path: Path, *, durable: bool = False, clock: Clock | None = None) -> None:
        self._path = path
        self._durable = durable
        self._clock = clock or RealClock()
        self._lock = threading.Lock()
        try:
            self._file = open(path, "ab", buffering=0)  # noqa: SIM115 (closed by close)
        except OSError as cause:
            raise EventLogError(f"cannot open the event log {path}: {cause.strerror}") from cause
        self.torn_offset: int | None = None
        try:
            self._take()
        except BaseException:
            self._file.close()
            raise

    def _take(self) -> None:
        """Become the one writer and cut a torn tail."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as cause:
            raise EventLogError(
                f"another process writes the event log {self._path}", remedy="stop it first"
            ) from cause
        self._next_seq, end = 0, 0
        for event, offset in _scan(self._path):
            self._next_seq, end = event.seq + 1, offset
        if end < os.fstat(self._file.fileno()).st_size:
            self.torn_offset = end
            self._file.truncate(end)

    def __enter__(self) -> FileEventLog:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the file; appending after it raises `ValueError`."""
        self._file.close()

    def append(
        self, kind: str, subject: str, data: Mapping[str, Any], trace_id: str | None = None
    ) -> int:
        """Record one event; see `EventLog.append`.

        Raises `UsageError` for a kind of another shape, `TypeError` for data
        that JSON cannot hold; nothing is written then.
        """
        if not _KIND.fullmatch(kind):
            raise UsageError(
                f"{kind!r} is not an event kind",
                code="core.event_kind",
                remedy="use <system>.<noun>_<past verb>, such as serving.request_finished",
            )
        with self._lock:
            seq = self._next_seq
            event = Event(SCHEMA, seq, self._clock.wall_ns(), kind, subject, trace_id, data)
            line = json.dumps(asdict(event), allow_nan=False, separators=(",", ":")) + "\n"
            # One write call: a crash tears at most this line.
            self._file.write(line.encode())
            if self._durable:
                os.fsync(self._file.fileno())
            self._next_seq = seq + 1
        return seq

    def read(self, from_seq: int = 0) -> Iterator[Event]:
        """The whole events on disk now; see `EventLog.read`."""
        return read(self._path, from_seq)


def read(path: Path, from_seq: int = 0) -> Iterator[Event]:
    """The events of a log that this process need not write.

    Raises `EventLogError` for a missing file, or for a broken line that is
    not the last: that is damage, not a torn write.
    """
    return (event for event, _ in _scan(path) if event.seq >= from_seq)


def _scan(path: Path) -> Iterator[tuple[Event, int]]:
    """Each whole event with the offset of its end."""
    end, last_seq = 0, -1
    try:
        with open(path, "rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    return
                event = _decode(line)
                if event is None or event.seq <= last_seq:
                    if not file.read(1):
                        return
                    raise EventLogError(
                        f"{path} is damaged at byte {end}",
                        remedy="restore the file from a backup, or cut it there",
                    )
                end += len(line)
                last_seq = event.seq
                yield event, end
    except OSError as cause:
        raise EventLogError(f"cannot read the event log {path}: {cause.strerror}") from cause


def _decode(line: bytes) -> Event | None:
    try:
        raw = json.loads(line)
        # Unknown fields of the same major are ignored.
        event = Event(**{name: raw[name] for name in Event.__slots__})
    except (ValueError, KeyError, TypeError):
        return None
    whole = isinstance(event.seq, int) and isinstance(event.data, dict)
    return event if whole and event.schema == SCHEMA else None
