"""The cache of code: what is kept, what is not trusted, how large it grows, and what keys name."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bedplate.simt import cache, compiler, fingerprint, native, stored
from bedplate.simt.api import Machine
from bedplate.simt.cache import ABANDONED_S, KEPT, Cache

KEY, OTHER = b"k" * 32, b"o" * 32
TEXT = """.version 8.0
.target sm_90
.address_size 64
.visible .entry one(.param .u64 out)
{
    .reg .b64 %d;
    .reg .b32 %r;
    ld.param.u64 %d, [out];
    mov.u32 %r, NUMBER;
    st.global.u32 [%d], %r;
    ret;
}
"""


@pytest.fixture
def kept(tmp_path: Path) -> Cache:
    """A cache with one entry."""
    made = Cache(tmp_path / "simt")
    made.store(KEY, b"code")
    return made


def entry(kept: Cache, key: bytes = KEY) -> Path:
    """The file of a key."""
    return kept.folder / key.hex()


def test_what_was_stored_is_found(kept: Cache) -> None:
    """By its key alone, also by another process's cache; ours alone on disk."""
    assert kept.find(KEY) == b"code"
    assert Cache(kept.folder).find(KEY) == b"code"
    assert kept.find(OTHER) is None
    assert (kept.hits, kept.misses, kept.refused) == (1, 1, 0)
    assert kept.folder.stat().st_mode & 0o777 == 0o700
    assert entry(kept).stat().st_mode & 0o777 == 0o600
    kept.store(KEY, b"newer")
    assert kept.find(KEY) == b"newer"
    assert os.listdir(kept.folder) == [KEY.hex()]


def _change(at: int) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[at] ^= 1
        path.write_bytes(content)

    return change


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def _link(path: Path) -> None:
    path.rename(path.parent / "elsewhere")
    path.symlink_to(path.parent / "elsewhere")


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda path: path.write_bytes(b""), "not what was stored"),
        (lambda path: os.truncate(path, 75), "not what was stored"),
        (lambda path: path.write_bytes(path.read_bytes() + b"x"), "not what was stored"),
        (_change(0), "not what was stored"),
        (_change(8), "not what was stored"),
        (_change(40), "not what was stored"),
        (_change(-1), "not what was stored"),
        (lambda path: path.chmod(0o640), "others may use it"),
        (lambda path: path.chmod(0o602), "others may use it"),
        (lambda path: path.parent.chmod(0o750), "others may use the folder"),
        (lambda path: os.truncate(path, cache.LARGEST + 1), f"{cache.LARGEST + 1} bytes"),
        (_fifo, "no regular file"),
        (_link, "symbolic links"),
        (lambda path: (path.unlink(), path.mkdir(0o700)), "no regular file|directory"),
    ],
)
def test_what_is_not_ours_or_not_whole_is_not_used(
    kept: Cache, harm: Callable[[Path], object], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is found, in one line of the log."""
    harm(entry(kept))
    with caplog.at_level(logging.WARNING, "bedplate.simt.cache"):
        assert kept.find(KEY) is None
    (record,) = caplog.records
    assert re.search(words, record.getMessage())
    assert kept.refused == 1


def test_an_entry_of_another_key_is_not_used(kept: Cache) -> None:
    """A file that was renamed holds the key that it was made for."""
    entry(kept).rename(entry(kept, OTHER))
    assert kept.find(OTHER) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: only root can give a file away")
@pytest.mark.parametrize("folder", [False, True])
def test_what_belongs_to_someone_else_is_not_used(
    kept: Cache, folder: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """An entry, or the folder, which then gets nothing either."""
    os.chown(kept.folder if folder else entry(kept), 12345, 12345)
    assert kept.find(KEY) is None
    assert "belongs to the user 12345" in caplog.text
    kept.store(OTHER, b"more")
    assert entry(kept, OTHER).exists() is not folder


def test_a_folder_that_cannot_be_had_costs_nothing(tmp_path: Path) -> None:
    """A file in its place, a symlink, one that others may write: nothing is kept or raised."""
    (tmp_path / "file").write_text("")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "own").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "own")
    for name in ("file", "open", "link", "file/below"):
        made = Cache(tmp_path / name)
        made.store(KEY, b"code")
        assert made.find(KEY) is None
        assert made.refused >= 1
    assert not any((tmp_path / "own").iterdir())
    assert not any((tmp_path / "open").iterdir())


def test_a_full_folder_loses_what_was_used_longest_ago(tmp_path: Path) -> None:
    """Down to a part of the bound; finding counts as use. Half-written files go when old."""
    made = Cache(tmp_path / "simt", most_bytes=10_000)
    keys = [bytes([number]) * 32 for number in range(12)]
    for number, key in enumerate(keys[:9]):
        made.store(key, bytes(1000))
        os.utime(entry(made, key), (number, number))
    assert made.find(keys[0]) is not None
    for name, age in ((".old", ABANDONED_S + 60), (".new", 0)):
        (made.folder / name).write_bytes(b"half")
        then = time.time() - age
        os.utime(made.folder / name, (then, then))
    made.store(keys[9], bytes(1000))
    left = {name for name in os.listdir(made.folder) if not name.startswith(".")}
    assert sum((made.folder / name).stat().st_size for name in left) <= KEPT * 10_000
    assert {keys[0].hex(), keys[9].hex(), keys[8].hex()} <= left
    assert keys[1].hex() not in left
    assert [name for name in os.listdir(made.folder) if name.startswith(".")] == [".new"]


def test_too_much_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one entry; nothing is written."""
    monkeypatch.setattr(cache, "LARGEST", 100)
    made = Cache(tmp_path / "simt")
    made.store(KEY, bytes(100))
    assert not made.folder.exists()


def test_writers_at_once_leave_whole_entries(kept: Cache) -> None:
    """Each reader sees one of the contents that were stored."""
    contents = [bytes([number]) * 50_000 for number in range(4)]
    seen: list[bytes | None] = []

    def write(content: bytes) -> None:
        for _ in range(20):
            kept.store(OTHER, content)
            seen.append(Cache(kept.folder).find(OTHER))

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(seen) <= set(contents)
    assert sorted(os.listdir(kept.folder)) == sorted([KEY.hex(), OTHER.hex()])


# What keys name, and the machine's use of it.


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache is this folder."""
    monkeypatch.setenv("BEDPLATE_CACHE_DIR", str(tmp_path))
    return tmp_path / "simt"


def run(number: int, block: int = 32, **options: object) -> int:
    """What a kernel with a number of its own stores, by a machine made for it."""
    with Machine(threads=1, memory=1 << 20, **options) as machine:  # type: ignore[arg-type]
        out = machine.array(np.zeros(1, np.uint32))
        machine.load(TEXT.replace("NUMBER", str(number)))["one"][1, block](out)
        return int(out.numpy()[0])


def test_a_second_machine_compiles_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same text, kernel and layout come from disk; all else is compiled."""
    made: list[str] = []
    plan = compiler.object_code

    def counted(what: compiler.Plan) -> bytes:
        made.append(what.order)
        return plan(what)

    monkeypatch.setattr(compiler, "object_code", counted)
    for number, options, count in (
        (1, {}, 1),
        (1, {}, 1),
        (2, {}, 2),
        (1, {"block": 33}, 3),
        (1, {"schedule": "ipdom"}, 4),
        (1, {"schedule": "ipdom"}, 4),
        (2, {}, 4),
    ):
        assert run(number, **options) == number  # type: ignore[arg-type]
        assert len(made) == count
    assert len(os.listdir(folder)) == 4
    monkeypatch.setenv(stored.VARIABLE, "0")
    assert run(1) == 1
    assert len(made) == 5


@pytest.mark.parametrize("where", ["files", "host_key"])
def test_other_code_and_other_processors_have_other_keys(
    folder: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """This system's own files, and LLVM with the host it compiles for."""
    run(1)
    owner = fingerprint if where == "files" else compiler
    monkeypatch.setattr(owner, where, lambda: "another")
    run(1)
    assert len(os.listdir(folder)) == 2


def test_corrupt_code_is_compiled_again(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """And stored again, so that it is one line once."""
    run(1)
    (path,) = folder.iterdir()
    _change(-100)(path)
    for _ in range(2):
        assert run(1) == 1
    assert caplog.text.count("a kernel is compiled again") == 1


def test_kernels_of_the_hal_come_from_disk_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both codes of a kernel, and the entry; profiles and checks are compiled each time."""
    native.native_kernels(TEXT.replace("NUMBER", "1"))
    monkeypatch.setattr(compiler, "object_code", lambda what: 1 / 0)
    made = native.native_kernels(TEXT.replace("NUMBER", "1"))
    assert list(made.kernels) == ["one"]
    assert len(os.listdir(folder)) >= 2
    with pytest.raises(ZeroDivisionError):
        native.native_kernels(TEXT.replace("NUMBER", "2"))


def test_the_fingerprint_is_of_every_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of one byte, a new file, another name: another fingerprint."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "one.py").write_text("1")
    monkeypatch.setattr(fingerprint, "_FOLDER", tmp_path)
    changes: list[Callable[[], object]] = [
        lambda: None,
        lambda: (tmp_path / "deep" / "one.py").write_text("2"),
        lambda: (tmp_path / "two.py").write_text(""),
        lambda: (tmp_path / "two.py").rename(tmp_path / "three.py"),
    ]
    for function in (fingerprint.code, fingerprint.files):
        seen = set()
        for number, change in enumerate(changes):
            with contextlib.suppress(FileNotFoundError):
                change()
            function.cache_clear()
            seen.add(function())
            assert len(seen) == number + 1
        (tmp_path / "three.py").rename(tmp_path / "two.py")
        (tmp_path / "two.py").unlink()
        (tmp_path / "deep" / "one.py").write_text("long")
        function.cache_clear()
    monkeypatch.undo()
    fingerprint.code.cache_clear()
    fingerprint.files.cache_clear()


def test_the_api_and_a_list_of_devices_import_no_llvm() -> None:
    """It takes longer than all the rest; parsing and asking need none of it."""
    program = (
        "import sys\n"
        "from bedplate.simt.api import Machine, parse\n"
        "from bedplate.hal.simt import Simt\n"
        "Simt().devices()\n"
        "sys.exit(any(name.startswith('llvmlite') for name in sys.modules))\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
