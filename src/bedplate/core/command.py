"""A command that a message tells the user to type.

It must work as it stands, wherever it is pasted: with the data directory that the
message is about, unless a fresh shell would take that one by itself, and with the
path of our own program, unless the shell finds it under its name.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from bedplate.core import paths

PROGRAM = "bedplate"


def command(words: str | Sequence[str], data: Path | None = None) -> str:
    """`bedplate WORDS` for `data`, without quotes around it; None: this process's own.

    A list of words is quoted for the shell, a text is taken as it is.
    """
    told = words if isinstance(words, str) else shlex.join(words)
    folder = paths.data_dir() if data is None else data
    fresh = {name: text for name, text in os.environ.items() if name != "BEDPLATE_DATA_DIR"}
    if folder != paths.data_dir(None, fresh):
        told += f" --data-dir {shlex.quote(str(folder))}"
    return f"{program()} {told}"


def quoted(words: str | Sequence[str], data: Path | None = None) -> str:
    """The same in backquotes, as sentences show it."""
    return f"`{command(words, data)}`"


def program() -> str:
    """What to type for this very installation's program."""
    own = Path(sysconfig.get_path("scripts")) / PROGRAM
    on_path = shutil.which(PROGRAM)
    if not own.exists() or (on_path is not None and Path(on_path).samefile(own)):
        return PROGRAM
    here = Path.cwd()
    return shlex.quote(str(own.relative_to(here) if own.is_relative_to(here) else own))
