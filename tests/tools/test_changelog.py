from pathlib import Path

import changelog
import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_fragments_become_sections_in_order(tmp_path: Path) -> None:
    """Breaking first, each fragment one line, empty kinds left out."""
    (tmp_path / "b.fixed.md").write_text("Two\nlines.\n")
    (tmp_path / "a.breaking.md").write_text("Gone.\n")
    (tmp_path / "README.md").write_text("not a fragment")
    text = changelog.section("1.0.0", "2031-01-01", changelog.fragments(tmp_path))
    assert text.split("\n") == [
        *("## 1.0.0 (2031-01-01)", ""),
        *("### Breaking", "", "- Gone.", ""),
        *("### Fixed", "", "- Two lines.", ""),
    ]


def test_an_unknown_kind_is_named(tmp_path: Path) -> None:
    """A fragment that no section would show is refused."""
    (tmp_path / "a.improved.md").write_text("")
    with pytest.raises(SystemExit, match="improved"):
        changelog.fragments(tmp_path)


def test_the_fragments_of_this_tree_are_well_named() -> None:
    """A release can be made from what lies here."""
    changelog.fragments(ROOT / "changelog.d")
