"""What is being waited for: a spinner on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TextIO

Note = Callable[[str], None]


@contextlib.contextmanager
def waiting(text: str, stream: TextIO | None = None) -> Iterator[Note]:
    """Show `text`, and what the yielded function is given instead, until the block ends."""
    out = stream or sys.stdout
    if not out.isatty():
        print(text, file=out, flush=True)

        def note(new: str) -> None:
            if new != text:
                print(new, file=out, flush=True)

        yield note
        return
    from rich.console import Console
    from rich.text import Text

    with Console(file=out).status(Text(text)) as status:
        yield lambda new: status.update(Text(new))
