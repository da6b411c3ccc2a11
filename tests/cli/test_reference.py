"""The reference page of the command line names what the parser takes, and nothing else."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bedplate.cli.main import parser

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md"
NOT_FOR_PEOPLE = {"gateway", "supervise"}  # started by the platform itself
OWN_PAGE = {"hal", "simt"}
EVERY = {"--json", "--debug", "--config", "--data-dir", "--help"}


def verbs() -> dict[str, argparse.ArgumentParser]:
    """The verbs that people use, with their parsers."""
    (action,) = [a for a in parser()._actions if isinstance(a, argparse._SubParsersAction)]
    return {name: verb for name, verb in action.choices.items() if name not in NOT_FOR_PEOPLE}


def flags(verb: argparse.ArgumentParser) -> set[str]:
    """The long flags of a verb and of the verbs inside it, those for people."""
    shown = [a for a in verb._actions if a.help is not argparse.SUPPRESS]
    inner = [a for a in shown if isinstance(a, argparse._SubParsersAction)]
    below = {flag for action in inner for each in action.choices.values() for flag in flags(each)}
    return below | {o for a in shown for o in a.option_strings if o.startswith("--")} - EVERY


def sections() -> dict[str, str]:
    """The page's sections by their title."""
    return dict(re.findall(r"^## (.+?)$\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.M | re.S))


def named(text: str) -> Iterator[str]:
    """The flags that a text names."""
    yield from re.findall(r"`(--[a-z-]+)", text)


def test_every_verb_is_on_the_page() -> None:
    """One line each in the table of verbs, and a section of its own."""
    found = set(re.findall(r"^\| \[?`([a-z]+)`", PAGE.read_text(), re.M))
    assert found == set(verbs())
    assert set(verbs()) - OWN_PAGE <= set(sections())


@pytest.mark.parametrize("name", sorted(set(verbs()) - OWN_PAGE))
def test_every_flag_is_in_its_verbs_section(name: str) -> None:
    """None is missing and none is invented."""
    taken = flags(verbs()[name])
    told = set(named(sections()[name]))
    negated = {flag for flag in taken if flag.startswith("--no-")}
    assert told - EVERY <= taken
    assert taken - negated <= told


def test_the_common_flags_are_on_the_page() -> None:
    """Those that every verb takes."""
    assert set(named(sections()["Flags of every verb"])) == EVERY - {"--help"}
