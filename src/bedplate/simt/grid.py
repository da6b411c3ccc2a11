"""A grid over the host's cores: pieces of consecutive blocks, and one outcome.

Each host thread takes the next piece when it is done with its last; compiled code runs
without the interpreter's lock. Of several faults the one in the lowest block is told, so
the outcome does not depend on who came first.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bedplate.simt import abi

PIECES = 8
"""Pieces a thread; more balance better, fewer set up memory less often."""


def threads_of_host() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0))


def run(
    entry: Callable[[int, int, int], int],
    make: Callable[[], tuple[Any, Any]],
    blocks: int,
    threads: int,
) -> Any | None:
    """Run `blocks` blocks; the fault record of the lowest block that failed, else None.

    `make` gives a Launch and its FaultRecord for one thread.
    """
    threads = max(min(threads, blocks), 1)
    if threads == 1:
        launch, record = make()
        return record if entry(ctypes.addressof(launch), 0, blocks) else None
    size = max(blocks // (threads * PIECES), 1)
    lock = threading.Lock()
    following = 0
    faults: list[Any] = []

    def work() -> None:
        nonlocal following
        launch, record = make()
        while True:
            with lock:
                first = following
                following += size
            if first >= blocks or faults:
                return
            if entry(ctypes.addressof(launch), first, min(size, blocks - first)):
                faults.append(record)
                return

    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work) for _ in range(threads)]:
            done.result()
    return min(faults, key=lambda record: record.block) if faults else None


def message(record: Any) -> str:
    """What a fault record says, without its place."""
    code = abi.Code(record.code)
    address = record.addresses[(record.mask & -record.mask).bit_length() - 1]
    return {
        abi.Code.BOUNDS: f"address {address:#x} is in no allocation",
        abi.Code.MISALIGNED: f"address {address:#x} is not aligned",
        abi.Code.TRAP: "the kernel trapped",
        abi.Code.BUDGET: "the instruction budget is spent",
        abi.Code.CANCELLED: "the launch was cancelled",
        abi.Code.BARRIER: "threads wait at barriers that can never complete",
        abi.Code.SYNC: "a lane that the mask of a .sync names is not here, or names itself not",
        abi.Code.DEADLOCK: "lanes spin for others of their warp that can never run: SIMT deadlock",
        abi.Code.MEMORY: "the host has no memory for the block's state",
    }[code]
