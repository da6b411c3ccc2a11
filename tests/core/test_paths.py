import os
import stat
from pathlib import Path

import pytest

import bedplate
from bedplate.core import paths
from bedplate.core.errors import EnvironmentLacks, UsageError


def test_the_flag_wins_over_the_environment(tmp_path: Path) -> None:
    """--data-dir, then BEDPLATE_DATA_DIR, then systemd's folder, then home."""
    env = {"BEDPLATE_DATA_DIR": "/e", "STATE_DIRECTORY": "/var/lib/bedplate", "XDG_DATA_HOME": "/x"}
    assert paths.data_dir(str(tmp_path), env) == tmp_path
    assert paths.data_dir(None, env) == Path("/e")
    del env["BEDPLATE_DATA_DIR"]
    assert paths.data_dir(None, env) == Path("/var/lib/bedplate")
    del env["STATE_DIRECTORY"]
    assert paths.data_dir(None, env) == Path("/x/bedplate")


def test_the_cache_lies_apart_from_the_data() -> None:
    """Deleting the cache never deletes what must be kept."""
    assert paths.cache_dir({"XDG_CACHE_HOME": "/c"}) == Path("/c/bedplate")
    assert paths.cache_dir({"BEDPLATE_CACHE_DIR": "/c/d"}) == Path("/c/d")


def test_a_private_folder_is_closed_to_others(tmp_path: Path) -> None:
    """The data folder holds keys: nobody else may look into it, whichever part is made first.
    A folder that was there keeps its mode: it may be anybody's."""
    tmp_path.chmod(0o755)
    made = paths.make_private(tmp_path / "a" / "b")
    for folder, mode in ((made, 0o700), (made.parent, 0o700), (tmp_path, 0o755)):
        assert stat.S_IMODE(os.stat(folder).st_mode) == mode


def test_a_file_in_the_way_is_a_usage_error(tmp_path: Path) -> None:
    """One sentence names the path; nothing is half made."""
    (tmp_path / "a").write_text("")
    with pytest.raises(UsageError, match=r"cannot write in the folder .*/a/b: Not a dir"):
        paths.make_private(tmp_path / "a" / "b")


@pytest.mark.parametrize("folder", ["/proc", "/proc/bedplate"])
def test_a_folder_that_the_machine_forbids_is_the_environments(folder: str) -> None:
    """Exit code 3, also as root: the kernel's own file systems take no files of ours."""
    with pytest.raises(EnvironmentLacks, match=f"{folder}: .*; choose another with --data-dir"):
        paths.make_private(Path(folder))


def test_native_libraries_are_found_on_the_package_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both the wheel's folder and an editable install's second folder count."""
    (tmp_path / "second" / "lib").mkdir(parents=True)
    monkeypatch.setattr(bedplate, "__path__", [str(tmp_path), str(tmp_path / "second")])
    assert paths.native_library_dir() == tmp_path / "second" / "lib"


def test_missing_native_libraries_say_how_to_build_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tree that was never built ends with exit code 3 and the remedy."""
    monkeypatch.setattr(bedplate, "__path__", [str(tmp_path)])
    with pytest.raises(EnvironmentLacks, match="make build"):
        paths.native_library_dir()
