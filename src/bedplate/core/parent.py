"""Parents and orphans, by what the kernel offers. Linux only.

A supervisor that is killed cannot stop its children: a child asks the kernel to
end it with its parent, at once or after a moment in which it says goodbye. A child that is
killed leaves its own children behind: a supervisor asks the kernel to be given
those, and collects them when they end, since nobody else may be there to do it
(a container often has no init).
Source: prctl(2), PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Collection
from types import FrameType

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def end_with_parent(parent: int, signal_number: int = signal.SIGTERM) -> None:
    """Have the kernel send `signal_number` when the parent, process `parent`, ends.

    Ends this process at once when the parent is already gone.
    """
    _prctl(_PR_SET_PDEATHSIG, signal_number)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal_number)


def end_soon_after_parent(parent: int, grace_s: float) -> None:
    """Have SIGTERM sent when the parent ends, and SIGALRM, which ends a process, `grace_s`
    later: nobody would be left to hurry a slow end. Takes over SIGHUP and SIGALRM.
    """

    def orphaned(number: int, frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_REAL, grace_s)
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, orphaned)
    end_with_parent(parent, signal.SIGHUP)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends; see `collect_orphans`."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def collect_orphans(own: Collection[int]) -> int:
    """Collect ended children other than `own`, whose exit status others wait for.

    Returns how many. Never blocks.
    """
    count = 0
    while (found := _ended_child()) is not None and found not in own:
        os.waitpid(found, 0)
        count += 1
    return count


def _ended_child() -> int | None:
    try:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return found.si_pid if found is not None else None


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option})")
