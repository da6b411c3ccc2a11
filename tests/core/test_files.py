import os
import stat
from pathlib import Path

import pytest

from bedplate.core import files
from bedplate.core.errors import EnvironmentLacks, UsageError


def test_the_old_content_stays_when_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk leaves the old file and no scratch file behind."""

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    target = tmp_path / "state.json"
    files.replace(target, "old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(EnvironmentLacks, match="No space left on device; free space there"):
        files.replace(target, "new")
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["state.json"]


def test_the_mode_is_as_asked_from_the_first_moment(tmp_path: Path) -> None:
    """A file of keys is never readable by others, whatever the umask."""
    files.replace(tmp_path / "key", b"secret", mode=0o600)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """The sentence holds the path that could not be written."""
    with pytest.raises(UsageError, match="nowhere/x"):
        files.replace(tmp_path / "nowhere" / "x", "")


def test_a_pipe_keeps_its_place(tmp_path: Path) -> None:
    """What is no plain file is written into: `--save 0=/dev/null` must not replace the device."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        files.replace(pipe, "all of it")
        assert os.read(reader, 100) == b"all of it"
        assert stat.S_ISFIFO(pipe.stat().st_mode)
    finally:
        os.close(reader)
    assert os.listdir(tmp_path) == ["pipe"]
