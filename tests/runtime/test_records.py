"""The rules of records, through each of the forms that a trace has."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bedplate.runtime import trace as trace_module
from bedplate.runtime.api import TraceInvalid, load_trace, write_log
from bedplate.runtime.trace import ALLOCATE, FREE, HEADER, RECORD, SYNC, USE, USED_ON

BAD = [
    ([(0, 1, 5, 0, ALLOCATE, 2), (1, 1, 5, 0, ALLOCATE, 2)], "2: 0x1 is live since NOUN 1"),
    ([(9, 1, 5, 0, ALLOCATE, 2), (8, 1, 5, 0, FREE, 2)], "2: time runs back by 1"),
    ([(0, 1, (1 << 62) + 1, 0, ALLOCATE, 2)], r"1: a size of .* from 0 to 2\^62"),
    (
        [(0, 1, 5, 0, ALLOCATE, 2), (1, 1, 5, 0, FREE, 2), (2, 1, 5, 0, FREE, 2)],
        "3: 0x1 was freed in NOUN 2",
    ),
]
LOG_ONLY = [
    ([(0, 1, 5, 0, 9, 2)], "1: an unknown action 9"),
    ([(0, 1, 5, 0, 0, 2)], "1: an unknown action 0"),
    ([(0, 1, 5, 0, ALLOCATE, 5)], "1: pool 5, and there are 5"),
    ([(0, 1, 5, 0, FREE, 2)], "1: 0x1 was not allocated"),
    ([(0, 1, 5, 0, USE, 2)], "1: 0x1 was never allocated"),
    ([(1 << 63, 1, 5, 0, ALLOCATE, 2)], r"1: a time of .* from 0 to 2\^63"),
]
SNAPSHOT_ONLY = [
    ([(0, 1, -5, 0, ALLOCATE, 2)], "1: a size of -5"),
    ([(0, -1, 5, 0, ALLOCATE, 2)], "1: an address of -1"),
    ([(0, 1 << 64, 5, 0, ALLOCATE, 2)], "1: an address of 18446744073709551616"),
    ([(-1, 1, 5, 0, ALLOCATE, 2)], "1: a time of -1000"),
    ([(1 << 200, 1, 5, 0, ALLOCATE, 2)], "1: a time of 16069380"),
]


@pytest.mark.parametrize(("rows", "part"), BAD + LOG_ONLY)
def test_a_log_is_held_to_the_rules(tmp_path: Path, rows: list[tuple[int, ...]], part: str) -> None:
    """The first record is number 1."""
    path = tmp_path / "a.bpt"
    write_log(path, np.array([(*row, 0, 0) for row in rows], RECORD))
    with pytest.raises(TraceInvalid, match="a.bpt, record " + part.replace("NOUN", "record")):
        load_trace(path)


@pytest.mark.parametrize(("rows", "part"), BAD + SNAPSHOT_ONLY)
def test_a_snapshot_is_held_to_the_rules(
    tmp_path: Path, rows: list[tuple[int, ...]], part: str
) -> None:
    """The first event is number 1."""
    names = {ALLOCATE: "alloc", FREE: "free_requested"}
    events: list[dict[str, Any]] = [
        {"time_us": row[0], "addr": row[1], "size": row[2], "stream": 0, "action": names[row[4]]}
        for row in rows
    ]
    path = tmp_path / "a.pickle"
    path.write_bytes(pickle.dumps({"device_traces": [events]}))
    with pytest.raises(TraceInvalid, match="a.pickle, event " + part.replace("NOUN", "event")):
        load_trace(path)


def test_work_on_what_was_freed_and_waits_are_records(tmp_path: Path) -> None:
    """`sanitize` is there to judge them."""
    rows = [(0, 1, 5, 0, ALLOCATE, 2), (1, 1, 0, 1, USE, 2), (2, 1, 0, 1, USED_ON, 2)]
    rows += [(3, 1, 0, 0, FREE, 2), (4, 1, 0, 1, USE, 2), (5, 0, 0, 1, SYNC, 2)]
    rows += [(6, 1, 5, 0, ALLOCATE, 2)]
    path = tmp_path / "a.bpt"
    write_log(path, np.array([(*row, 0, 0) for row in rows], RECORD))
    assert len(load_trace(path)) == len(rows)


def test_a_log_says_what_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tail is left out and told; facts that go beyond the file, and too many records, no."""
    path = tmp_path / "a.bpt"
    write_log(path, np.array([(i, i + 1, 5, 0, ALLOCATE, 2, 0, 0) for i in range(3)], RECORD))
    raw = path.read_bytes()
    told: list[str] = []
    assert len(load_trace(path, told.append)) == 3
    assert told == []
    path.write_bytes(raw[:-7])
    assert len(load_trace(path, told.append)) == 2
    assert told == [f"{path} ends inside a record; its last 33 bytes are left out"]
    head = np.frombuffer(raw, HEADER, 1).copy()
    head["facts"] = 1 << 40
    path.write_bytes(head.tobytes() + raw[HEADER.itemsize :])
    with pytest.raises(TraceInvalid, match="ends inside its facts"):
        load_trace(path)
    path.write_bytes(raw)
    monkeypatch.setattr(trace_module, "MOST_RECORDS", 2)
    with pytest.raises(TraceInvalid, match="holds 3 records; more than 2"):
        load_trace(path)
