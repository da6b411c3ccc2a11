"""Writes down what a program asks of its allocator, as a trace.

    tracer = Tracer(memory)
    block = memory.pool("scratch").allocate(1 << 20, main)
    tracer.use(block, side)   # work on `side` that uses the block was submitted
    block.used_on(side)       # written down by itself, as requests and frees are
    block.free()
    write_csv("job.csv", tracer.trace())

Requests, frees and `used_on` are heard; work is told, because an allocator does not
see it. `sanitize` finds what was told here and not to the allocator.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from bedplate.runtime.trace import ALLOCATE, FREE, RECORD, SYNC, USE, USED_ON, Trace

if TYPE_CHECKING:
    from bedplate.runtime.allocator import Allocator, Block, Stream


class Tracer:
    """Records of one allocator from now on; any thread may call."""

    def __init__(self, memory: Allocator) -> None:
        self._rows: list[tuple[int, ...]] = []
        self._threads: dict[int, int] = {}
        self._lock = threading.Lock()
        self._start_ns = time.monotonic_ns()
        memory.tracer = self

    def trace(self) -> Trace:
        """What was written down so far."""
        with self._lock:
            return np.array(self._rows, RECORD)

    def use(self, block: Block, stream: Stream) -> None:
        """Work on `stream` that uses the block was submitted."""
        self._add(USE, block.address, 0, stream.number)

    def sync(self, stream: Stream) -> None:
        """The host has waited for all work of `stream`."""
        self._add(SYNC, 0, 0, stream.number)

    def allocated(self, block: Block, bytes: int, stream: Stream, pool: int) -> None:
        """A request was served; the allocator's word."""
        if bytes:
            self._add(ALLOCATE, block.address, bytes, stream.number, pool)

    def used_on(self, block: Block, stream: Stream) -> None:
        """The allocator was told of a use."""
        self._add(USED_ON, block.address, 0, stream.number)

    @contextlib.contextmanager
    def freeing(self, block: Block) -> Iterator[None]:
        """A block is given back inside; nobody's request of the same bytes comes before."""
        with self._lock:
            yield
            if block.address:
                self._append(FREE, block.address, 0, 0, 0)

    def _add(self, action: int, address: int, bytes: int, stream: int, pool: int = 0) -> None:
        with self._lock:
            self._append(action, address, bytes, stream, pool)

    def _append(self, action: int, address: int, bytes: int, stream: int, pool: int) -> None:
        thread = self._threads.setdefault(threading.get_ident(), len(self._threads))
        now = time.monotonic_ns() - self._start_ns
        self._rows.append((now, address, bytes, stream, action, pool, thread, 0))
