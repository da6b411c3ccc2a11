"""The page of lies is what the cases say, and is stale when they say something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from bedplate.hal.suite import page


def test_the_page_follows_the_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Written, current, and stale once a lie is new."""
    (tmp_path / "docs" / "reference").mkdir(parents=True)
    options = ["--root", str(tmp_path)]
    assert page.main(["--check", *options]) == 1
    assert page.main(options) == 0
    assert page.main(["--check", *options]) == 0
    named = page.catchers()
    assert f"There are {len(named)} lies." in (tmp_path / page.PAGE).read_text()
    monkeypatch.setattr(page, "catchers", lambda: named | {"new_lie": ["queue.some_case"]})
    assert page.main(["--check", *options]) == 1
    assert "run python -m bedplate.hal.suite.page" in capsys.readouterr().out
