from __future__ import annotations

from pathlib import Path

import pytest

from bedplate.orchestrator.errors import AlreadyRunning
from bedplate.orchestrator.record import SCHEMA, Record
from bedplate.orchestrator.wanted import Wanted
from bedplate.serving.api import ModelFileError

DATA = Path("/plate")


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: two files of one name, a link and a folder."""
    for name in ("a/m.gguf", "b/m.gguf"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    (tmp_path / "link.gguf").symlink_to(tmp_path / "a" / "m.gguf")
    monkeypatch.chdir(tmp_path / "a")
    return tmp_path


def running(source: str, host: str = "127.0.0.1", port: int = 8000) -> Record:
    """A record of a platform that serves `source`."""
    return Record(SCHEMA, 1, 1, f"http://127.0.0.1:{port}", "m", 0, source, host)


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted(),
        Wanted(port=0),
        Wanted("m.gguf", "127.0.0.1", 8000),
        Wanted("../a/m.gguf"),
        Wanted("../link.gguf"),
        Wanted(host="localhost"),
    ],
)
def test_the_same_in_other_words_is_found(models: Path, wanted: Wanted) -> None:
    """Nothing in particular, a relative path, a link, another name of the host."""
    wanted.check(DATA, running(str(models / "a" / "m.gguf")))


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (Wanted("../b/m.gguf"), "/a/m.gguf runs already at .*, not .*/b/m.gguf"),
        (Wanted("."), "/a/m.gguf runs already at .*, not .*/a;"),
        (Wanted("smollm2"), "/a/m.gguf runs already at .*, not smollm2;"),
        (Wanted(port=9), "runs already at http://127.0.0.1:8000, not on port 9;"),
        (Wanted(host="0.0.0.0"), "not on 0.0.0.0;"),
        (Wanted(host="host.invalid"), "not on host.invalid;"),
    ],
)
def test_something_else_is_refused_with_both_named(models: Path, wanted: Wanted, told: str) -> None:
    """A file of the same name elsewhere, a folder, a known name, a port, a host: exit code 2, and
    a remedy for this data directory."""
    with pytest.raises(AlreadyRunning, match=told) as raised:
        wanted.check(DATA, running(str(models / "a" / "m.gguf")))
    assert raised.value.exit_code == 2
    assert "`bedplate down --data-dir /plate` first" in str(raised.value)


def test_a_name_is_not_a_path_and_an_older_record_has_no_source(models: Path) -> None:
    """A file that happens to have a known name is not that model."""
    Wanted("smollm2").check(DATA, running("smollm2"))
    with pytest.raises(AlreadyRunning, match="smollm2 runs already"):
        Wanted("m.gguf").check(DATA, running("smollm2"))
    Wanted(host="127.0.0.1").check(DATA, running("", host=""))


def test_a_model_that_is_not_there_is_said_before_what_runs(models: Path) -> None:
    """A typing error is not another model."""
    with pytest.raises(ModelFileError, match="no model 'smolm2'"):
        Wanted("smolm2").check(DATA, running("smollm2"))
