"""Traces of requests, and our binary log of them; other forms have their own readers.

A trace is a numpy array of records, one a request or a free, in order. Files
ending in `.xz` or `.gz` are read as what is inside. A record's `address` names
a block between its request and its free; it need not be where it lies.

Three actions besides say what streams did, for `sanitize`: `use` is work of a
stream on a block, `used_on` what the program told its allocator of it, `sync` a
wait of the host for all work of a stream. Placements do not look at them.
"""

from __future__ import annotations

import io
from collections.abc import Callable
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
MAGIC = b"BPTRACE\0"
VERSION = 1
HEADER = np.dtype([("magic", "S8"), ("version", "<u4"), ("record_bytes", "<u4"), ("facts", "<u8")])
MOST_RECORDS = 20_000_000
"""What a trace may have: a job of hours; 800 MB of them here, and as much in a replay."""
MOST_STREAMS = 1024
"""What the allocator knows at once."""

Trace = NDArray[np.void]


def load(path: str | Path, told: Callable[[str], None] = lambda _: None) -> Trace:
    """Read RMM's CSV, a binary log or a PyTorch snapshot, whatever the file is called.

    `told` hears what is left out of a file that is good otherwise. Raises TraceInvalid
    with the line, record or event at fault.
    """
    from bedplate.runtime.rmm import lines_of, read_csv
    from bedplate.runtime.snapshot import read_snapshot
    from bedplate.runtime.unpacked import unpacked

    path = Path(path)
    name = str(path)
    with unpacked(path) as file:
        start = file.peek(len(MAGIC))[: len(MAGIC)]
        if start.startswith(MAGIC.rstrip(b"\0")):
            raw = file.read()
            trace = read_log(raw, name)
            if dropped := dropped_bytes(raw):
                told(f"{name} ends inside a record; its last {dropped} bytes are left out")
            return trace
        if start[:1] == b"\x80":
            return read_snapshot(file.read(), name, told)
        text = io.TextIOWrapper(file, "utf-8-sig", "replace", newline="")
        return read_csv(lines_of(text, name), name)


def read_log(raw: bytes, name: str = "the log") -> Trace:
    """Our binary log; a cut last record is left out.

    Raises TraceInvalid for another version, and for a record that `records` refuses.
    """
    from bedplate.runtime.records import Records

    if len(raw) < HEADER.itemsize:
        raise TraceInvalid(f"{name} ends inside its header")
    head = np.frombuffer(raw, HEADER, 1)[0]
    if int(head["version"]) != VERSION or int(head["record_bytes"]) != RECORD.itemsize:
        raise TraceInvalid(
            f"{name} has version {head['version']} with records of {head['record_bytes']} bytes",
            remedy=f"this program reads version {VERSION} with {RECORD.itemsize}",
        )
    body = raw[HEADER.itemsize + int(head["facts"]) :]
    if HEADER.itemsize + int(head["facts"]) > len(raw):
        raise TraceInvalid(f"{name} ends inside its facts")
    whole = len(body) // RECORD.itemsize
    if whole > MOST_RECORDS:
        raise TraceInvalid(
            f"{name} holds {whole:,} records; more than {MOST_RECORDS:,} are not read",
            remedy="cut it",
        )
    trace = np.frombuffer(body, RECORD, whole).copy()
    records = Records(name, "record")
    fields = (trace[field].tolist() for field in ("time_ns", "address", "bytes", "action", "pool"))
    for number, row in enumerate(zip(*fields, strict=True), start=1):
        records.check(number, *row)
    return trace


def dropped_bytes(raw: bytes) -> int:
    """Bytes after the last whole record of a binary log."""
    head = np.frombuffer(raw, HEADER, 1)[0]
    return (len(raw) - HEADER.itemsize - int(head["facts"])) % RECORD.itemsize


def write_log(path: str | Path, trace: Trace, facts: str = "") -> None:
    """Write a binary log; `facts` says of which device. Written beside and renamed."""
    text = facts.encode()
    head = np.array([(MAGIC, VERSION, RECORD.itemsize, len(text))], HEADER)
    files.replace(Path(path), head.tobytes() + text + trace.tobytes())
