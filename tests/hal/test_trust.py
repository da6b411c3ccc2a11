"""Which files may become part of this process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bedplate.hal import trust
from bedplate.hal.errors import BackendRefused


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that may be loaded."""
    folder = tmp_path / "hal.d"
    folder.mkdir(mode=0o755)
    path = folder / "x.so"
    path.write_bytes(b"code")
    path.chmod(0o644)
    return path


def test_our_own_file_is_fine(file: Path) -> None:
    """Owned by us, written by us alone, with the right hash."""
    assert trust.check_file(file, trust.digest(file)) == file.resolve()


def test_a_relative_path_is_never_taken(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even when it would be found from here."""
    monkeypatch.chdir(file.parent)
    with pytest.raises(BackendRefused, match="not an absolute path"):
        trust.check_file(Path("x.so"))


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_file_that_others_may_write_is_refused(file: Path, mode: int) -> None:
    """The sentence has the mode and the remedy the command."""
    file.chmod(mode)
    with pytest.raises(BackendRefused, match=f"{mode:04o}") as caught:
        trust.check_file(file)
    assert "chmod go-w" in (caught.value.remedy or "")


def test_a_directory_that_others_may_write_is_refused(file: Path) -> None:
    """Who can put files there can replace ours."""
    file.parent.chmod(0o777)
    with pytest.raises(BackendRefused, match="may be written by others"):
        trust.check_file(file)


def test_a_directory_above_needs_the_sticky_bit(file: Path) -> None:
    """/tmp is fine, a plain world-writable one is not."""
    file.parent.parent.chmod(0o777)
    with pytest.raises(BackendRefused, match="may be written by others"):
        trust.check_file(file)
    file.parent.parent.chmod(0o1777)
    assert trust.check_file(file)


@pytest.mark.parametrize("above", [0, 1])
def test_a_group_with_others_in_it_may_not_write(
    file: Path, monkeypatch: pytest.MonkeyPatch, above: int
) -> None:
    """Neither where the file lies nor above; a private group may, as under umask 002."""
    folder = file.parents[above]
    folder.chmod(0o775)
    monkeypatch.setattr(trust, "_shared", lambda gid: True)
    with pytest.raises(BackendRefused, match=f"{folder} may be written by others .mode 0775") as no:
        trust.check_file(file)
    assert no.value.remedy == f"chmod go-w {folder}"
    folder.chmod(0o1775)
    if above:
        assert trust.check_file(file)
    folder.chmod(0o775)
    monkeypatch.setattr(trust, "_shared", lambda gid: False)
    assert trust.check_file(file)


def test_an_unknown_group_counts_as_shared() -> None:
    """Nobody can say who is in it."""
    assert trust._shared(3_999_999_999)
    assert not trust._shared(0) or os.geteuid() != 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_belongs_to_another_user_is_refused(file: Path, what: str) -> None:
    """The file and its directory."""
    os.chown(file if what == "file" else file.parent, 4242, -1)
    with pytest.raises(BackendRefused, match="belongs to the user 4242"):
        trust.check_file(file)


def test_a_symlink_stays_in_its_directory(file: Path, tmp_path: Path) -> None:
    """Beside its target it is fine, out of the directory it is not, nor into nothing."""
    beside = file.parent / "y.so"
    beside.symlink_to("x.so")
    assert trust.check_file(beside) == file.resolve()
    other = tmp_path / "other"
    other.mkdir()
    away = other / "z.so"
    away.symlink_to(file)
    with pytest.raises(BackendRefused, match="leads out"):
        trust.check_file(away)
    file.unlink()
    with pytest.raises(BackendRefused, match="cannot be read"):
        trust.check_file(beside)


def test_a_loop_of_symlinks_is_refused(file: Path) -> None:
    """With a reason, not a hang."""
    loop = file.parent / "loop.so"
    loop.symlink_to("loop.so")
    with pytest.raises(BackendRefused, match="cannot be read"):
        trust.check_file(loop)


def test_a_directory_is_no_library(file: Path) -> None:
    """Only regular files are loaded."""
    with pytest.raises(BackendRefused, match="not a regular file"):
        trust.check_file(file.parent)


def test_another_content_is_refused(file: Path) -> None:
    """The hash of the manifest is the file that was registered."""
    wanted = trust.digest(file)
    file.write_bytes(b"codE")
    with pytest.raises(BackendRefused, match="SHA-256"):
        trust.check_file(file, wanted)


def test_the_environment_is_believed_only_without_extra_rights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another effective user means set-user-id."""
    assert not trust.secure_execution()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert trust.secure_execution()


def test_roots_files_are_fine_for_everyone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a package manager installed belongs to root, whoever runs us."""
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    assert trust.check_file(Path("/etc/passwd")) == Path("/etc/passwd")


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    """In the system's words."""
    with pytest.raises(BackendRefused, match="cannot be read: No such file or directory"):
        trust.check_file(tmp_path / "absent")
    with pytest.raises(BackendRefused, match="cannot be read: No such file or directory"):
        trust.check_directory(tmp_path / "absent")
