"""Traces of requests: RMM's CSV, our binary log, and what both become.

A trace is a numpy array of records, one a request or a free, in order. Files
ending in `.xz` or `.gz` are read as what is inside. A record's `address` names
a block between its request and its free; it need not be where it lies.

Three actions besides say what streams did, for `sanitize`: `use` is work of a
stream on a block, `used_on` what the program told its allocator of it, `sync` a
wait of the host for all work of a stream. Placements do not look at them.
"""

from __future__ import annotations

import csv
import gzip
import io
import lzma
import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bedplate.core import files
from bedplate.runtime.errors import TraceInvalid

RECORD = np.dtype(
    [
        ("time_ns", "<u8"),
        ("address", "<u8"),
        ("bytes", "<u8"),
        ("stream", "<u4"),
        ("action", "u1"),
        ("pool", "u1"),
        ("thread", "<u2"),
        ("padding", "<u8"),
    ]
)
"""The 40 bytes of a record, as `runtime.h` has them."""

ALLOCATE, FREE, USE, USED_ON, SYNC = 1, 2, 3, 4, 5
COLUMNS = ("Thread", "Time", "Action", "Pointer", "Size", "Stream")
MAGIC = b"BPTRACE\0"
VERSION = 1
HEADER = np.dtype([("magic", "S8"), ("version", "<u4"), ("record_bytes", "<u4"), ("facts", "<u8")])
MOST_BYTES = 4 << 30

Trace = NDArray[np.void]


def load(path: str | Path) -> Trace:
    """Read a `.csv` or `.bpt` file. Raises TraceInvalid with the line at fault."""
    path = Path(path)
    try:
        raw = _open(path)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as cause:
        reason = getattr(cause, "strerror", None) or cause
        raise TraceInvalid(f"{path} cannot be read: {reason}") from cause
    if raw.startswith(MAGIC.rstrip(b"\0")):
        return read_log(raw, str(path))
    if raw[:1] == b"\x80":
        from bedplate.runtime.snapshot import read_snapshot

        return read_snapshot(raw, str(path))
    return read_csv(io.StringIO(raw.decode("utf-8", "replace")), str(path))


def _open(path: Path) -> bytes:
    if path.suffix == ".xz":
        with lzma.open(path) as packed:
            raw = packed.read(MOST_BYTES + 1)
    elif path.suffix == ".gz":
        with gzip.open(path) as zipped:
            raw = zipped.read(MOST_BYTES + 1)
    else:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise TraceInvalid(f"{path} holds more than {MOST_BYTES} bytes", remedy="cut it")
    return raw


def read_csv(lines: Iterable[str], name: str = "the trace") -> Trace:
    """RMM's log: `Thread,Time,Action,Pointer,Size,Stream`, in any order of columns.

    Times are seconds, or clock times `HH:MM:SS:microseconds`. A failed request
    (`allocate failure`) is left out. Raises TraceInvalid for a missing column,
    a negative or unreadable number, a free of an unknown pointer, a request for
    a pointer that is live, work on a pointer that never was, and time that runs back.
    """
    reader = csv.reader(lines)
    header = [column.strip() for column in next(reader, [])]
    missing = [column for column in COLUMNS if column not in header]
    if len(missing) == len(COLUMNS):
        raise TraceInvalid(
            f"{name} is no trace: neither RMM's CSV, a .bpt log nor a PyTorch snapshot",
            remedy=f"a CSV begins with the line {','.join(COLUMNS)}",
        )
    if missing:
        raise TraceInvalid(
            f"{name} has no column {missing[0]}",
            remedy=f"its first line must name {', '.join(COLUMNS)}",
        )
    at = [header.index(column) for column in COLUMNS]
    rows: list[tuple[int, int, int, int, int, int, int, int]] = []
    live: dict[int, int] = {}
    known: set[int] = set()
    threads: dict[str, int] = {}
    streams: dict[str, int] = {}
    start, last, number = 0, -1, 1
    for number, cells in enumerate(reader, start=2):
        if not cells:
            continue
        try:
            thread, when, action, pointer, size, stream = (cells[i].strip() for i in at)
            act = _ACTIONS[action]
            address = 0 if act == SYNC else _address(pointer)
            time_ns, amount = _nanoseconds(when), int(size) if size else 0
        except (IndexError, ValueError, KeyError) as cause:
            raise TraceInvalid(f"{name}, line {number}: {_reason(cause, cells, at)}") from cause
        if act is None:
            continue
        if not rows:
            start = time_ns
        trouble = None
        if not 0 <= amount < 1 << 63:
            trouble = f"a size of {amount}"
        elif time_ns < last:
            trouble = f"time runs back to {when}"
        elif act == ALLOCATE and address in live:
            trouble = f"{pointer} is live since line {live[address]}"
        elif act == FREE and address not in live:
            trouble = f"{pointer} was not allocated"
        elif act in (USE, USED_ON) and address not in known:
            trouble = f"{pointer} was never allocated"
        if trouble:
            raise TraceInvalid(f"{name}, line {number}: {trouble}")
        last = time_ns
        if act == ALLOCATE:
            live[address] = number
            known.add(address)
        elif act == FREE:
            del live[address]
        worker = threads.setdefault(thread, len(threads))
        lane = streams.setdefault(stream, len(streams))
        rows.append((time_ns - start, address, amount, lane, act, 2, worker % 65536, 0))
    return np.array(rows, RECORD)


_ACTIONS: dict[str, int | None] = {
    "allocate": ALLOCATE,
    "free": FREE,
    "deallocate": FREE,
    "allocate failure": None,
    "use": USE,
    "used_on": USED_ON,
    "sync": SYNC,
}


def _nanoseconds(text: str) -> int:
    if ":" not in text:
        whole, _, part = text.partition(".")
        return int(whole) * 1_000_000_000 + int((part + "000000000")[:9])
    hours, minutes, seconds, micro = (int(part) for part in text.split(":"))
    return (((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micro) * 1000


def _address(text: str) -> int:
    return int(text, 16)


def _reason(cause: Exception, cells: list[str], at: list[int]) -> str:
    if isinstance(cause, IndexError):
        return f"it has {len(cells)} columns"
    if isinstance(cause, KeyError):
        return f"an unknown action {cause}"
    for column, parse in (("Time", _nanoseconds), ("Pointer", _address), ("Size", int)):
        text = cells[at[COLUMNS.index(column)]].strip()
        try:
            parse(text)
        except ValueError:
            return f"{column} is {text!r}, which is no number"
    return str(cause)


def read_log(raw: bytes, name: str = "the log") -> Trace:
    """Our binary log. A cut last record is left out; TraceInvalid for another version."""
    if len(raw) < HEADER.itemsize:
        raise TraceInvalid(f"{name} ends inside its header")
    head = np.frombuffer(raw, HEADER, 1)[0]
    if int(head["version"]) != VERSION or int(head["record_bytes"]) != RECORD.itemsize:
        raise TraceInvalid(
            f"{name} has version {head['version']} with records of {head['record_bytes']} bytes",
            remedy=f"this program reads version {VERSION} with {RECORD.itemsize}",
        )
    body = raw[HEADER.itemsize + int(head["facts"]) :]
    whole = len(body) // RECORD.itemsize
    return np.frombuffer(body, RECORD, whole).copy()


def dropped_bytes(raw: bytes) -> int:
    """Bytes after the last whole record of a binary log."""
    head = np.frombuffer(raw, HEADER, 1)[0]
    return (len(raw) - HEADER.itemsize - int(head["facts"])) % RECORD.itemsize


def write_log(path: str | Path, trace: Trace, facts: str = "") -> None:
    """Write a binary log; `facts` says of which device. Written beside and renamed."""
    text = facts.encode()
    head = np.array([(MAGIC, VERSION, RECORD.itemsize, len(text))], HEADER)
    files.replace(Path(path), head.tobytes() + text + trace.tobytes())


def write_csv(path: str | Path, trace: Trace) -> None:
    """Write RMM's columns. Written beside and renamed."""
    names = {act: name for name, act in _ACTIONS.items() if act and name != "deallocate"}
    lines = [",".join(COLUMNS)]
    for row in trace:
        seconds, rest = divmod(int(row["time_ns"]), 1_000_000_000)
        lines.append(
            f"{row['thread']},{seconds}.{rest:09d},{names[int(row['action'])]},"
            f"{int(row['address']):#x},{row['bytes']},{row['stream']}"
        )
    files.replace(Path(path), ("\n".join(lines) + "\n").encode())
