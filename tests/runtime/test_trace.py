"""Traces in and out: RMM's CSV, the binary log, PyTorch's snapshots; and what is refused."""

from __future__ import annotations

import gzip
import lzma
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.runtime import unpacked as unpacked_module
from bedplate.runtime.api import (
    NumbersAllocator,
    TraceInvalid,
    load_trace,
    snapshot,
    write_csv,
    write_log,
    write_snapshot,
)
from bedplate.runtime.trace import ALLOCATE, FREE, HEADER, RECORD, dropped_bytes, read_log

HEAD = "Thread,Time,Action,Pointer,Size,Stream\n"


def csv(folder: Path, text: str) -> Path:
    """A CSV file of this text."""
    path = folder / "trace.csv"
    path.write_text(text)
    return path


def test_rmm_columns_are_read_in_any_order(tmp_path: Path) -> None:
    """Clock times and seconds, other columns beside, a failed request left out."""
    path = csv(
        tmp_path,
        "Time,Thread,Extra,Action,Pointer,Size,Stream\n"
        "10:00:01:000005,77,x,allocate,0xa0,100,0x0\n"
        "10:00:01:000007,77,x,allocate failure,0x0,900,0x0\n"
        "10:00:02:000000,78,x,free,0xa0,100,0x7f\n",
    )
    trace = load_trace(path)
    assert trace["action"].tolist() == [ALLOCATE, FREE]
    assert trace["time_ns"].tolist() == [0, 999_995_000]
    assert trace["thread"].tolist() == [0, 1]
    assert trace["stream"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("Thread,Time,Action,Pointer,Size\n", "no column Stream"),
        ("", "is no trace: neither"),
        ("{}\n", "is no trace: neither"),
        (HEAD.replace(",Size", ""), "no column Size; its first line must name Thread, Time"),
        (HEAD + "0,1,allocate,0x1,-5,0\n", "line 2: Size is '-5', which is no number"),
        (HEAD + "0,1,allocate,0x1,99999999999999999999,0\n", "line 2: a size"),
        (HEAD + "0,1,free,0x1,5,0\n", "line 2: 0x1 was not allocated"),
        (HEAD + "0,1,use,0x1,,0\n", "line 2: 0x1 was never allocated"),
        (HEAD + "0,1,used_on,,,0\n", "line 2: Pointer is ''"),
        (HEAD + "0,1,allocate,0x1,5,0\n0,2,allocate,0x1,5,0\n", "line 3: 0x1 is live since line 2"),
        (HEAD + "0,2,allocate,0x1,5,0\n0,1,free,0x1,5,0\n", "line 3: time runs back"),
        (HEAD + "0,2,allocate,0x1\n", "line 2: it has 4 columns"),
        (HEAD + "0,2,grab,0x1,5,0\n", "unknown action 'grab'"),
        (HEAD + "0,2,allocate,zebra,5,0\n", "line 2: Pointer is 'zebra', which is no hexa"),
        (HEAD + "0,2,allocate,0x1,much,0\n", "line 2: Size is 'much'"),
        (HEAD + "0,soon,allocate,0x1,5,0\n", "line 2: Time is 'soon'"),
    ],
)
def test_a_bad_csv_is_refused_with_its_line(tmp_path: Path, text: str, part: str) -> None:
    """One sentence, the line and the reason; exit code 2."""
    with pytest.raises(TraceInvalid, match=part) as caught:
        load_trace(csv(tmp_path, text))
    assert caught.value.exit_code == 2


def test_files_that_are_missing_or_cut(tmp_path: Path) -> None:
    """A missing file, a folder, a broken compression."""
    with pytest.raises(TraceInvalid, match="cannot be read"):
        load_trace(tmp_path / "none.csv")
    with pytest.raises(TraceInvalid, match="cannot be read"):
        load_trace(tmp_path)
    cut = tmp_path / "cut.csv.xz"
    cut.write_bytes(lzma.compress(HEAD.encode() * 100)[:40])
    with pytest.raises(TraceInvalid, match="cannot be read"):
        load_trace(cut)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.xz", "a.csv.gz"])
def test_a_file_of_too_many_bytes_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unpacked, one byte more than the most; the most itself is read."""
    text = (HEAD + "0,1,allocate,0x1,5,0\n").encode()
    pack = {"xz": lzma.compress, "gz": gzip.compress}.get(name.rpartition(".")[2], bytes)
    (tmp_path / name).write_bytes(pack(text))
    monkeypatch.setattr(unpacked_module, "MOST_BYTES", len(text))
    assert len(load_trace(tmp_path / name)) == 1
    monkeypatch.setattr(unpacked_module, "MOST_BYTES", len(text) - 1)
    with pytest.raises(TraceInvalid, match=f"holds more than {len(text) - 1} bytes"):
        load_trace(tmp_path / name)


def test_the_csv_has_the_words_of_rmm(tmp_path: Path) -> None:
    """What RMM's own readers know: allocate and free."""
    rows = [(0, 512, 5, 0, ALLOCATE, 2, 0, 0), (1500, 512, 0, 0, FREE, 2, 0, 0)]
    write_csv(tmp_path / "a.csv", np.array(rows, RECORD))
    assert (tmp_path / "a.csv").read_text() == (
        HEAD + "0,0.000000000,allocate,0x200,5,0\n0,0.000001500,free,0x200,0,0\n"
    )


def test_a_snapshot_has_a_segment_for_each_run_of_memory() -> None:
    """Blocks of a run in one segment, its sizes their sums; plain segments one each."""
    for piece, wanted in ((2 << 20, 1), (0, 3)):
        with NumbersAllocator(1 << 30, piece=piece) as memory:
            stream, pool = memory.stream(), memory.pool("kv")
            blocks = [pool.allocate(16 << 20, stream) for _ in range(3)]
            blocks[1].free()
            (*segments,) = (s for s in snapshot(memory)["segments"] if s["segment_type"] == "large")
            assert len(segments) == wanted
            inside = [block for segment in segments for block in segment["blocks"]]
            assert sum(block["size"] for block in inside) == sum(s["total_size"] for s in segments)
            assert sum(s["allocated_size"] for s in segments) == 32 << 20


records = st.lists(st.tuples(st.integers(1, 1 << 40), st.integers(0, 3)), max_size=30)


@given(sizes=records)
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[tuple[int, int]]
) -> None:
    """Through CSV and through the binary log, every field that they hold."""
    rows = []
    for start, action in ((0, ALLOCATE), (1000, FREE)):
        for i, (size, stream) in enumerate(sizes):
            rows.append((start + i, (i + 1) << 9, size, stream, action, 2, 0, 0))
    trace = np.array(rows, RECORD)
    folder = tmp_path_factory.mktemp("trace")
    write_log(folder / "a.bpt", trace, "a device")
    assert (load_trace(folder / "a.bpt") == trace).all()
    write_csv(folder / "a.csv", trace)
    again = load_trace(folder / "a.csv")
    for field in ("time_ns", "address", "bytes", "action"):
        assert (again[field] == trace[field]).all()


def test_a_cut_log_loses_its_last_record_alone(tmp_path: Path) -> None:
    """The tail is dropped and its length told; another version is refused."""
    trace = np.array([(1, 512, 5, 0, ALLOCATE, 2, 0, 0), (2, 512, 5, 0, FREE, 2, 0, 0)], RECORD)
    path = tmp_path / "a.bpt"
    write_log(path, trace)
    raw = path.read_bytes()
    assert len(read_log(raw[:-7])) == 1
    assert dropped_bytes(raw[:-7]) == 33
    head = np.frombuffer(raw, HEADER, 1).copy()
    head["version"] = 9
    with pytest.raises(TraceInvalid, match="version 9"):
        read_log(head.tobytes() + raw[HEADER.itemsize :])
    with pytest.raises(TraceInvalid, match="inside its header"):
        read_log(raw[:9])


def test_a_snapshot_of_pytorch_is_read(tmp_path: Path) -> None:
    """Requests and the moment they were freed; what began before the ring is left out."""
    events = [
        {"action": "free_requested", "addr": 4, "size": 9, "stream": 0, "time_us": 5},
        {"action": "segment_alloc", "addr": 512, "size": 1 << 21, "stream": 0, "time_us": 6},
        {"action": "alloc", "addr": 512, "size": 100, "stream": 0, "time_us": 7},
        {"action": "free_requested", "addr": 512, "size": 100, "stream": 0, "time_us": 9},
        {"action": "free_completed", "addr": 512, "size": 100, "stream": 0, "time_us": 9},
    ]
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [[], events]}))
    trace = load_trace(path)
    assert trace["action"].tolist() == [ALLOCATE, FREE]
    assert trace["time_ns"].tolist() == [0, 2000]


class Hostile:
    """What a pickle could do."""

    def __reduce__(self) -> tuple[object, ...]:
        return print, ("this must not run",)


@pytest.mark.parametrize(
    "raw",
    [
        pickle.dumps({"device_traces": [Hostile()]}),
        pickle.dumps({"device_traces": 5}),
        pickle.dumps([1, 2]),
        pickle.dumps({"device_traces": [[{"action": "alloc"}]]}),
        pickle.dumps({"device_traces": [[]]})[:-4],
        b"\x80\x04" + b"]" * 10,
    ],
)
def test_a_hostile_snapshot_runs_nothing(
    tmp_path: Path, raw: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only plain containers and scalars are built."""
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(raw)
    with pytest.raises(TraceInvalid, match="no memory snapshot"):
        load_trace(path)
    assert "must not run" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("data", "part"),
    [
        ({"segments": []}, "it has no 'device_traces'; make one with torch"),
        ([Hostile()], r"it holds code \(STACK_GLOBAL\)"),
    ],
)
def test_what_is_no_snapshot_is_told(tmp_path: Path, data: object, part: str) -> None:
    """What is missing, or that there is code in it."""
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(data))
    with pytest.raises(TraceInvalid, match=part):
        load_trace(path)


def test_our_snapshot_has_pytorchs_form(tmp_path: Path) -> None:
    """Segments tile into blocks whose sizes add up, live ones marked as PyTorch marks them."""
    with NumbersAllocator(1 << 30) as memory:
        stream = memory.stream()
        pool = memory.pool("activations")
        blocks = [pool.allocate(size, stream) for size in (100, 5000, 3 << 20, 40 << 20)]
        blocks[2].free()
        data = snapshot(memory)
        write_snapshot(tmp_path / "s.pickle", memory)
    assert pickle.loads((tmp_path / "s.pickle").read_bytes()) == data
    live = 0
    for segment in data["segments"]:
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at
            at += block["size"]
        assert at - segment["address"] == segment["total_size"]
        live += segment["requested_size"]
    assert live == 100 + 5000 + (40 << 20)
