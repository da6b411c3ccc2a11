"""Text of others that is shown: what a terminal or a JSON document can hold.

A file's name may be no UTF-8 and a sentence may hold control characters; printed
as they are, the first ends the program and the second steers the terminal.
"""

from __future__ import annotations

import signal


def legible(text: str) -> str:
    """`text` with everything that does not print escaped, as in a Python literal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def signal_name(number: int) -> str:
    """`SIGABRT`; `signal 40` for one that has no name, as most real-time signals have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
