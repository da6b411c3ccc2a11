"""What is being waited for: a spinner on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TextIO

Note = Callable[[str], None]


@contextlib.contextmanager
def waiting(stream: TextIO | None = None) -> Iterator[Note]:
    """Show what the yielded function is given, the last text alone, until the block ends."""
    out = stream or sys.stdout
    if not out.isatty():
        told = ""

        def note(new: str) -> None:
            nonlocal told
            if new != told:
                print(new, file=out, flush=True)
            told = new

        yield note
        return
    from rich.console import Console
    from rich.text import Text

    with Console(file=out).status(Text()) as status:
        yield lambda new: status.update(Text(new))
