"""What verbs print: JSON for machines, tables for people, both on stdout.

Logs and errors go to stderr, so stdout can always be piped.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, TextIO

import msgspec

from bedplate.core.legible import legible


def people(arguments: argparse.Namespace) -> TextIO:
    """Where lines for people go; with --json stdout is for machines."""
    return sys.stderr if arguments.json else sys.stdout


def at_work(arguments: argparse.Namespace) -> TextIO:
    """Where it is told that a command is at work, which is no data: a pipe does not get it."""
    out = people(arguments)
    return out if out.isatty() else sys.stderr


def shown(text: str) -> str:
    """Lines for a terminal: what does not print, and would steer it, is escaped."""
    return "\n".join(legible(line) for line in text.split("\n"))


def note(arguments: argparse.Namespace, text: str) -> None:
    """A line for people."""
    print(shown(text), file=people(arguments), flush=True)


def print_json(data: Any) -> None:
    """One JSON document on stdout; dataclasses, enums and paths are understood."""
    encoded = msgspec.json.encode(data, enc_hook=str)
    print(msgspec.json.format(encoded, indent=2).decode())


def print_term(term: str, text: str) -> None:
    """A term and what is to say of it; on a terminal folded beside the term."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    indent = " " * (len(term) + 2)
    lines = textwrap.wrap(
        shown(f"{term}  {text}"),
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    print("\n".join(lines))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table on stdout that stays readable without colour and when piped."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(shown(str(cell))) for cell in row))
    # A pipe has no width; cutting or folding cells there would lose data.
    width = None if sys.stdout.isatty() else 10_000
    console = Console(width=width, highlight=False, markup=False)
    with console.capture() as captured:
        console.print(table)
    print("\n".join(line.rstrip() for line in captured.get().strip("\n").splitlines()))
