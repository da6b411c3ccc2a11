from collections.abc import Callable
from pathlib import Path

import pytest
from checks.lengths import file_lengths

Write = Callable[[str, str], Path]


def test_only_files_above_the_limit_are_violations(
    tree: Path, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    """601 lines fail, 401 are a note, 400 are nothing."""
    for lines in (400, 401, 600, 601):
        write(f"a{lines}.py", "x = 1\n" * lines)
    assert file_lengths(tree, False) == ["a601.py: 601 lines, split it below 600"]
    notes = capsys.readouterr().out.splitlines()
    assert [note.split()[1] for note in notes] == ["a401.py", "a600.py"]


def test_generated_files_are_as_long_as_they_are(tree: Path, write: Write) -> None:
    """Their description is what people read."""
    write("a.h", "/* Generated from spec.toml; do not edit. */\n" + "int x;\n" * 900)
    assert file_lengths(tree, False) == []


def test_names_that_say_nothing_are_refused(tree: Path, write: Write) -> None:
    """A file is named for its noun."""
    write("src/utils.py", "")
    assert file_lengths(tree, False) == ["src/utils.py: name the noun instead of 'utils'"]
