"""Signals that wait for a moment: between making a process and knowing it, none may strike.

An exception out of a signal's handler inside `subprocess.Popen` leaves a process that
nobody knows. Blocking the signals instead would block them in the new process too.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_ASK_TO_STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Signals that ask to stop are handled at the block's end. Only for handlers in Python, and
    on the main thread, where alone they run."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    before = {which: signal.getsignal(which) for which in _ASK_TO_STOP}
    handled = {which: handler for which, handler in before.items() if callable(handler)}
    for which in handled:
        signal.signal(which, note)
    try:
        yield
    finally:
        for which, handler in handled.items():
            signal.signal(which, handler)
        for number in dict.fromkeys(came):
            signal.raise_signal(number)
