"""RMM's log, field by field: what RMM writes is read, and nothing else."""

from __future__ import annotations

import lzma
import tracemalloc
from pathlib import Path

import pytest

from bedplate.runtime import unpacked as unpacked_module
from bedplate.runtime.api import TraceInvalid, load_trace
from bedplate.runtime.trace import ALLOCATE, FREE

HEAD = "Thread,Time,Action,Pointer,Size,Stream\n"
GOOD = HEAD + "0,1,allocate,0x1,5,0\n"


def read(folder: Path, text: str, encoding: str = "utf-8") -> tuple[list[int], list[int]]:
    """Actions and times of a CSV of this text."""
    path = folder / "trace.csv"
    path.write_bytes(text.encode(encoding))
    trace = load_trace(path)
    return trace["action"].tolist(), trace["time_ns"].tolist()


@pytest.mark.parametrize(
    ("rows", "part"),
    [
        ("0,1,allocate,0x1,+5,0\n", r"line 2: Size is '\+5', which is no number of bytes"),
        ("0,1,allocate,0x1,1_0,0\n", "line 2: Size is '1_0'"),
        ("0,1,allocate,0x1,٣,0\n", "line 2: Size is '٣'"),
        ("0,1,allocate,0x1,,0\n", "line 2: Size is ''"),
        ("0,1,allocate,0x1,5.0,0\n", "line 2: Size is '5.0'"),
        ("0,1,allocate,0x1,4611686018427387905,0\n", r"line 2: a size of .*from 0 to 2\^62"),
        ("0,1,allocate,100,5,0\n", "line 2: Pointer is '100', which is no hexa.* with 0x"),
        ("0,1,allocate,-0x1,5,0\n", "line 2: Pointer is '-0x1'"),
        ("0,1,allocate,0x1_0,5,0\n", "line 2: Pointer is '0x1_0'"),
        ("0,1,allocate,0x10000000000000000,5,0\n", r"line 2: an address of .*2\^64"),
        ("0,1.-5,allocate,0x1,5,0\n", "line 2: Time is '1.-5', which is no number of seconds"),
        ("0,-1,allocate,0x1,5,0\n", "line 2: Time is '-1'"),
        ("0,1e3,allocate,0x1,5,0\n", "line 2: Time is '1e3'"),
        ("0,1.,allocate,0x1,5,0\n", "line 2: Time is '1.'"),
        ("0,24:00:00:0,allocate,0x1,5,0\n", "line 2: Time is '24:00:00:0'"),
        ("0,1:60:00:0,allocate,0x1,5,0\n", "line 2: Time is '1:60:00:0'"),
        ("0,99999999999,allocate,0x1,5,0\n", r"line 2: a time of .*from 0 to 2\^63"),
        ("0,1,allocate,0x1,5,0,9\n", "line 2: it has 7 columns, the first line 6"),
        ("0,1,allocate,0x1,5,0\n0,2,free,0x1,5,0\n0,3,free,0x1,5,0\n", "was freed in line 3"),
        ('0,1,allocate,0x1,5,"0\n', "line 2: it is no CSV"),
        ('0,1,allocate,0x1,5,"a"b\n', "line 2: it is no CSV"),
        ("0,1,allocate,0x1,5," + "9" * 131_073 + "\n", "line 2: it is no CSV: field larger"),
        ("0" * (1 << 20) + "\n", "line 2: more than 1,048,576 characters"),
        ("\n\n0,1,grab,0x1,5,0\n", "line 4: an unknown action 'grab'"),
        ('0,1,allocate,0x1,5,"a\nb"\n0,1,grab,0x1,5,0\n', "line 4: an unknown action"),
        ("0,1,\x1b[2J,0x1,5,0\n", r"unknown action '\\x1b\[2J'"),
    ],
)
def test_what_rmm_does_not_write_is_refused(tmp_path: Path, rows: str, part: str) -> None:
    """With its line as an editor counts, the value cut and escaped, and exit code 2."""
    with pytest.raises(TraceInvalid, match=part) as caught:
        read(tmp_path, HEAD + rows)
    assert caught.value.exit_code == 2
    assert len(str(caught.value)) < 300


def test_a_double_column_is_refused(tmp_path: Path) -> None:
    """Which of the two was meant, nobody can know."""
    with pytest.raises(TraceInvalid, match="line 1: column Size is there twice"):
        read(tmp_path, "Thread,Time,Action,Pointer,Size,Stream,Size\n")


def test_a_clock_that_crosses_midnight_goes_on(tmp_path: Path) -> None:
    """In both forms of RMM's clock; a small step back is no midnight."""
    rows = "0,23:59:59:999999,allocate,0x1,5,0\n0,00:00:00.000001,free,0x1,5,0\n"
    assert read(tmp_path, HEAD + rows) == ([ALLOCATE, FREE], [0, 2000])
    rows = "0,10:00:00:000002,allocate,0x1,5,0\n0,10:00:00:000001,free,0x1,5,0\n"
    with pytest.raises(TraceInvalid, match="line 3: time runs back by 1,000 ns"):
        read(tmp_path, HEAD + rows)


def test_what_editors_and_printf_add_is_read(tmp_path: Path) -> None:
    """A byte order mark, CR LF, no last newline, and glibc's word for a null pointer."""
    assert read(tmp_path, GOOD, "utf-8-sig") == ([ALLOCATE], [0])
    assert read(tmp_path, GOOD.replace("\n", "\r\n").rstrip()) == ([ALLOCATE], [0])
    rows = "0,1,allocate failure,(nil),5,0\n0,2,allocate,(nil),0,0\n0,3,free,(nil),0,0\n"
    assert read(tmp_path, HEAD + rows * 1) == ([ALLOCATE, FREE], [0, 1_000_000_000])


def packed(path: Path, body: bytes) -> Path:
    """Eight million bytes of a body's copies behind a header, in a few thousand."""
    path.write_bytes(lzma.compress(HEAD.encode() + body * ((8 << 20) // len(body)), preset=0))
    return path


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (b"\n", "line 1002: more than 1,000 empty lines"),
        (b"0", "line 2: more than 1,048,576 characters"),
        (b"0,1,sync,,,\n", r"holds more than [\d,]+ bytes in [\d,]+ packed ones"),
    ],
)
def test_a_small_file_that_unpacks_to_much_is_refused_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes, part: str
) -> None:
    """In the memory of a few lines; 92 KB took 3.7 GB."""
    monkeypatch.setattr(unpacked_module, "FREE_BYTES", 2 << 20)
    monkeypatch.setattr(unpacked_module, "MOST_RATIO", 10)
    path = packed(tmp_path / "lines.csv.xz", body)
    tracemalloc.start()
    try:
        with pytest.raises(TraceInvalid, match=part):
            load_trace(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20
