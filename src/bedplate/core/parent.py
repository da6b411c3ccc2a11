"""A child that must not outlive its parent says so to the kernel.

A supervisor that is killed cannot stop its children; the kernel can. Linux only.
Source: prctl(2), PR_SET_PDEATHSIG.
"""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int, signal_number: int = signal.SIGTERM) -> None:
    """Have the kernel send `signal_number` when the parent, process `parent`, ends.

    Ends this process at once when the parent is already gone.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        os.kill(os.getpid(), signal_number)
