"""RMM's log: `Thread,Time,Action,Pointer,Size,Stream`, in any order of columns.

A field is what RMM writes or nothing: digits without sign, underscore or other
scripts; a pointer in hexadecimal with its 0x, since `100` could be either number, or
`(nil)`; a time in seconds, or of the clock, `HH:MM:SS:microseconds` or
`HH:MM:SS.fraction`, where a step back by more than half a day is midnight.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from bedplate.core import files
from bedplate.runtime.errors import TraceInvalid
from bedplate.runtime.records import Records, shown
from bedplate.runtime.trace import ALLOCATE, FREE, SYNC, USE, USED_ON, Trace

COLUMNS = ("Thread", "Time", "Action", "Pointer", "Size", "Stream")
MOST_LINE = 1 << 20
MOST_EMPTY = 1000
DAY_NS = 24 * 3600 * 1_000_000_000

_ACTIONS: dict[str, int | None] = {
    "allocate": ALLOCATE,
    "free": FREE,
    "deallocate": FREE,
    "allocate failure": None,
    "use": USE,
    "used_on": USED_ON,
    "sync": SYNC,
}
_POINTER = re.compile(r"0[xX]([0-9a-fA-F]{1,40})")
_SIZE = re.compile(r"[0-9]{1,40}")
_SECONDS = re.compile(r"([0-9]{1,20})(?:\.([0-9]{1,40}))?")
_CLOCK = re.compile(r"([0-9]{1,2}):([0-5][0-9]):([0-5][0-9]|60)(?::([0-9]{1,6})|\.([0-9]{1,40}))")


def lines_of(file: TextIO, name: str) -> Iterator[str]:
    """The lines of a text, none longer than a megabyte, a few of them empty."""
    number, empty = 0, 0
    while line := file.readline(MOST_LINE):
        number += 1
        empty += line.isspace()
        if empty > MOST_EMPTY:
            raise TraceInvalid(f"{name}, line {number}: more than {MOST_EMPTY:,} empty lines")
        if len(line) == MOST_LINE:
            raise TraceInvalid(f"{name}, line {number}: more than {MOST_LINE:,} characters")
        yield line


def read_csv(lines: Iterable[str], name: str = "the trace") -> Trace:
    """Read a log. A failed request (`allocate failure`) is left out.

    Raises TraceInvalid with the line for a missing or double column, a field that is
    not what RMM writes, and whatever `records` refuses: among it a free of an unknown
    pointer, a request for a pointer that is live, and time that runs back.
    """
    reader = csv.reader(lines, strict=True)
    records = Records(name, "line")
    try:
        at, width = _header(reader, name)
        clock = _Clock()
        threads: dict[str, int] = {}
        streams: dict[str, int] = {}
        for cells in reader:
            if not cells:
                continue
            number = reader.line_num
            if len(cells) != width:
                raise records.refused(
                    number, f"it has {len(cells)} columns, the first line {width}"
                )
            thread, when, action, pointer, size, stream = (cells[i].strip() for i in at)
            if action not in _ACTIONS:
                raise records.refused(number, f"an unknown action {shown(action)}")
            act = _ACTIONS[action]
            if act is None:
                continue
            time_ns = clock.nanoseconds(when)
            address = 0 if act == SYNC or pointer == "(nil)" else _hexadecimal(pointer)
            # A request says its size; elsewhere it may be left out.
            amount = 0 if not size and act != ALLOCATE else _digits(size)
            for column, cell, value in (
                ("Time", when, time_ns),
                ("Pointer", pointer, address),
                ("Size", size, amount),
            ):
                if value is None:
                    raise records.refused(
                        number, f"{column} is {shown(cell)}, which is no {_MEANT[column]}"
                    )
            records.add(
                number,
                time_ns or 0,
                address or 0,
                amount or 0,
                streams.setdefault(stream, len(streams)),
                act,
                thread=threads.setdefault(thread, len(threads)) % 65536,
            )
    except csv.Error as cause:
        raise records.refused(reader.line_num, f"it is no CSV: {cause}") from cause
    return records.trace()


_MEANT = {
    "Time": "number of seconds and no time HH:MM:SS:microseconds",
    "Pointer": "hexadecimal number with 0x",
    "Size": "number of bytes",
}


def _header(reader: Iterator[list[str]], name: str) -> tuple[list[int], int]:
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
    for column in COLUMNS:
        if header.count(column) > 1:
            raise TraceInvalid(f"{name}, line 1: column {column} is there twice")
    return [header.index(column) for column in COLUMNS], len(header)


class _Clock:
    """Times as nanoseconds; clock times carry a day when they cross midnight."""

    def __init__(self) -> None:
        self._days = 0
        self._last = 0

    def nanoseconds(self, text: str) -> int | None:
        if found := _SECONDS.fullmatch(text):
            return int(found[1]) * 1_000_000_000 + _fraction(found[2])
        found = _CLOCK.fullmatch(text)
        if found is None or int(found[1]) > 23:
            return None
        seconds = (int(found[1]) * 60 + int(found[2])) * 60 + int(found[3])
        part = int(found[4]) * 1000 if found[4] else _fraction(found[5])
        time_ns = seconds * 1_000_000_000 + part
        if self._last - time_ns > DAY_NS // 2:
            self._days += 1
        self._last = time_ns
        return self._days * DAY_NS + time_ns


def _fraction(digits: str | None) -> int:
    return int(((digits or "") + "000000000")[:9])


def _hexadecimal(text: str) -> int | None:
    found = _POINTER.fullmatch(text)
    return int(found[1], 16) if found else None


def _digits(text: str) -> int | None:
    return int(text) if _SIZE.fullmatch(text) else None


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
