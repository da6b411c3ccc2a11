"""What a model is called when nobody said."""

from __future__ import annotations

from pathlib import Path

import pytest

from bedplate.core.errors import UsageError
from bedplate.core.modelname import model_name


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("smollm2", "smollm2"),
        ("/models/a.b.gguf", "a.b"),
        ("/models/folder/", "folder"),
        (".", "here"),
        ("../here/x.gguf", "x"),
        ("~/x.gguf", "x"),
    ],
)
def test_the_last_name_of_the_whole_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: str, name: str
) -> None:
    """Also when the path is short for a longer one."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert model_name(model) == name


def test_a_link_has_a_name_of_its_own(tmp_path: Path) -> None:
    """The files of a download cache are links to hashes."""
    (tmp_path / "nice.gguf").symlink_to(tmp_path / "0f3a")
    assert model_name(str(tmp_path / "nice.gguf")) == "nice"


@pytest.mark.parametrize("model", ["/", "/models/.gguf"])
def test_no_name_is_refused(model: str) -> None:
    """A model called nothing could not be asked for."""
    with pytest.raises(UsageError, match=f"the model '{model}' gives no name"):
        model_name(model)
