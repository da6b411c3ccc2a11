from pathlib import Path

import docs
import pytest


def test_pages_are_found_and_an_index_comes_first(tmp_path: Path) -> None:
    """Adding a page needs no list; sections keep their order."""
    for name in ("index.md", "decisions/0001.md", "guide/a.md", "guide/index.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert docs.navigation(tmp_path) == [
        {"Home": "index.md"},
        {"Guide": ["guide/index.md", "guide/a.md"]},
        {"Decisions": ["decisions/0001.md"]},
    ]


def test_a_page_that_no_section_shows_is_refused(tmp_path: Path) -> None:
    """A page that nobody can reach is a mistake."""
    (tmp_path / "index.md").write_text("")
    (tmp_path / "lost.md").write_text("")
    with pytest.raises(SystemExit, match="lost"):
        docs.navigation(tmp_path)
