"""The terminal that a long command holds.

`make` would answer Ctrl-C with an error of its own, however cleanly the command
that it runs stops. So a command that someone else's process group started takes
the terminal for itself while it runs: Ctrl-C then reaches it alone, and `make`
sees it end with code 0. Source: tcsetpgrp(3), setpgid(2).
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def own_terminal() -> Iterator[None]:
    """Be the terminal's foreground process group; nothing changes without a terminal,
    in the background, or for a command that leads its group already."""
    group = os.getpgrp()
    terminal = None if group == os.getpid() else _foreground_terminal(group)
    if terminal is None:
        yield
        return
    try:
        os.setpgid(0, 0)
        _give(terminal, os.getpid())
        # Stopping us would leave a terminal where nobody reads.
        stop = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
        try:
            yield
        finally:
            signal.signal(signal.SIGTSTP, stop)
            _give(terminal, group)
    finally:
        os.close(terminal)


def _foreground_terminal(group: int) -> int | None:
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError:
        return None
    if os.tcgetpgrp(terminal) == group:
        return terminal
    os.close(terminal)
    return None


def _give(terminal: int, group: int) -> None:
    # Whoever is not in the foreground is stopped for this, unless it ignores that.
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        with contextlib.suppress(OSError):
            os.tcsetpgrp(terminal, group)
    finally:
        signal.signal(signal.SIGTTOU, before)
