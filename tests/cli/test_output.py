import argparse
import json
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pytest

from bedplate.cli.output import people, print_json, print_table


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Thing:
    path: Path
    colour: Colour


def test_json_understands_what_verbs_return(capsys: pytest.CaptureFixture[str]) -> None:
    """Dataclasses, enums and paths become plain JSON."""
    print_json({"things": [Thing(Path("/x"), Colour.RED)]})
    assert json.loads(capsys.readouterr().out) == {"things": [{"path": "/x", "colour": "red"}]}


def test_a_piped_table_loses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Cells keep their whole text, markup included, without colour codes."""
    print_table(["name", "reason"], [["a", "[bold]x[/bold] " + "y" * 90]])
    out = capsys.readouterr().out
    assert "[bold]x[/bold] " + "y" * 90 in out
    assert "\x1b" not in out


def test_with_json_people_read_stderr() -> None:
    """stdout is one document then."""
    assert people(argparse.Namespace(json=True)) is sys.stderr
    assert people(argparse.Namespace(json=False)) is sys.stdout
