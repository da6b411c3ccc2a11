"""PyTorch's snapshots: what is left out is told, and what would cost too much is refused."""

from __future__ import annotations

import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from bedplate.runtime.api import TraceInvalid, load_trace
from bedplate.runtime.snapshot import read_snapshot


def event(action: str, address: int, size: int = 100, time_us: int = 1) -> dict[str, Any]:
    """One of PyTorch's trace entries."""
    return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time_us}


def test_other_devices_and_blocks_from_before_are_told(tmp_path: Path) -> None:
    """One sentence each, with the numbers; what was read is as before."""
    blocks = [
        {"address": 512, "size": 100, "state": "active_allocated"},
        {"address": 9, "size": 7, "state": "active_allocated"},
        {"address": 99, "size": 7000, "state": "inactive"},
    ]
    events = [event("free_requested", 4, 9), event("alloc", 512)]
    data = {
        "segments": [{"device": 1, "blocks": blocks}, {"device": 0, "blocks": blocks}, 5],
        "device_traces": [[], events, [event("alloc", 1)] * 3],
    }
    path = tmp_path / "s.pickle"
    path.write_bytes(pickle.dumps(data))
    told: list[str] = []
    assert len(load_trace(path, told.append)) == 1
    assert told == [
        f"{path}: device 2 is left out, 3 events; device 1 is read",
        f"{path}: 2 blocks with 16 bytes were live before the recording began and are left out",
    ]


def test_a_snapshot_without_history_says_what_to_record(tmp_path: Path) -> None:
    """It is whole, and there is nothing to replay in it."""
    path = tmp_path / "s.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [[], []]}))
    with pytest.raises(TraceInvalid, match=r"no history.*_record_memory_history\(\)"):
        load_trace(path)


@pytest.mark.parametrize(
    ("data", "part"),
    [
        ({"device_traces": [5]}, "device 0 is no list"),
        ({"device_traces": [[5]]}, "event 1 is no dict"),
        ({"device_traces": [[{"action": ["alloc"]}]]}, "event 1, action is no str"),
        ({"device_traces": [[event("alloc", "7")]]}, "event 1, addr is no int"),  # type: ignore[arg-type]
        ({"device_traces": [[event("alloc", 1, True)]]}, "event 1, size is no int"),
        ({"device_traces": [[event("alloc", 1, 2.5)]]}, "event 1, size is no int"),  # type: ignore[arg-type]
        ({"device_traces": [[{"action": "alloc", "addr": 1}]]}, "event 1 has no 'size'"),
    ],
)
def test_values_of_another_kind_are_refused(data: object, part: str) -> None:
    """With the event."""
    with pytest.raises(TraceInvalid, match="no memory snapshot: " + part):
        read_snapshot(pickle.dumps(data))


@pytest.mark.parametrize(
    "raw", [b"\x80\x04]r\xff\xff\xff\x07.", b"\x80\x04]p134217727\n."], ids=["binary", "text"]
)
def test_a_memo_beyond_the_file_is_refused(raw: bytes) -> None:
    """Eleven bytes took 2.1 GB, for a table up to the index."""
    tracemalloc.start()
    try:
        with pytest.raises(TraceInvalid, match="keeps number 134217727 of its objects"):
            read_snapshot(raw)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_value_that_takes_for_ever_to_hash_is_refused() -> None:
    """Sixty pairs of one another: the hash of the outermost takes 2^60 steps."""
    nested: tuple[Any, ...] = ()
    for _ in range(60):
        nested = (nested, nested)
    with pytest.raises(TraceInvalid, match="action is no str"):
        read_snapshot(pickle.dumps({"device_traces": [[{"action": nested}]]}))
