"""Many lives one after another: memory, threads and descriptors of the process come back.

The process is measured after a few rounds, which fill whatever is kept on
purpose, and again after many more.
"""

from __future__ import annotations

import ctypes
import gc
import os
import time
from collections.abc import Callable
from pathlib import Path

from bedplate.hal import abi
from bedplate.hal.batch import Batch
from bedplate.hal.buffer import Range
from bedplate.hal.native import ffi
from bedplate.hal.suite.cases.batches import fill
from bedplate.hal.suite.cases.mem import create
from bedplate.hal.suite.registry import case
from bedplate.hal.suite.subject import Subject, expect

_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)
"""Gives free heap back to the system; glibc has it."""

SLACK_BYTES = 256 << 10
"""For the heap's own habits. cpu grows by 0; built to leak, by 470 KiB (modules) to 9 MiB."""


def resident_bytes() -> int:
    """Memory of this process that is not shared with a file, all garbage gone.

    What a finalizer lets go is garbage of the next collection: left to the
    second measurement, it would hide as much growth as it frees.
    """
    for _ in range(5):
        if not gc.collect():
            break
    # Free heap that is still resident would take a leak in without growing.
    if _TRIM is not None:
        _TRIM(0)
    _, resident, shared, *_ = Path("/proc/self/statm").read_text().split()
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def settles(body: Callable[[], object], rounds: int, what: str, warm: int = 20) -> None:
    """The process is as large after many rounds as after a few."""
    for _ in range(warm):
        body()
    before = resident_bytes()
    for _ in range(rounds):
        body()
    grown = resident_bytes() - before
    expect(grown < SLACK_BYTES, f"{rounds} times {what} cost {grown >> 10} KiB")


def _held() -> tuple[int, int]:
    """Threads and descriptors of this process."""
    return _count("/proc/self/task"), _count("/proc/self/fd")


def _not_grown(before: tuple[int, int]) -> None:
    """Fail when more are held than before. A thread that was joined may still be listed a while."""
    until = time.monotonic() + 1
    while True:
        threads, descriptors = after = _held()
        if threads <= before[0] and descriptors <= before[1]:
            return
        expect(time.monotonic() < until, f"threads and descriptors grew from {before} to {after}")
        time.sleep(0.01)


def _count(folder: str) -> int:
    return len(os.listdir(folder))


@case("mem", "positive", tier="full", catches=["kept_memory"])
def memory_comes_back_to_the_process(s: Subject) -> None:
    """256 KiB, written and released seventy-five times."""

    def body() -> None:
        buffer = s.memory(256 << 10, None)
        s.completes(fill(buffer, 1), "a fill")
        buffer.release()

    settles(body, 75, "256 KiB")


@case("mem", "positive", tier="full")
def small_memory_comes_back_to_the_process(s: Subject) -> None:
    """Twelve thousand handles of 64 bytes."""

    def body() -> None:
        for handle in [create(s, bytes=64)[1] for _ in range(100)]:
            s.works(s.api.mem.release(s.handle, handle), "mem.release")

    settles(body, 120, "a hundred memories")


@case("timeline", "positive", tier="full")
def timelines_come_back(s: Subject) -> None:
    """Two and a half thousand, each moved once."""

    def body() -> None:
        for _ in range(100):
            line = s.timeline()
            s.works(s.api.timeline.signal(s.handle, line, 1), "timeline.signal")
            s.works(s.api.timeline.destroy(s.handle, line), "timeline.destroy")

    settles(body, 25, "a hundred timelines")


@case("queue", "positive", tier="full")
def queues_come_back(s: Subject) -> None:
    """A hundred, with a batch each; threads and descriptors too."""
    done, turn = s.timeline(), 0

    def body() -> None:
        nonlocal turn
        turn += 1
        queue = s.queue()
        s.works(s.submit(queue, Batch(), signal=[(done, turn)]), "queue.submit")
        s.works(s.wait(done, turn), "waiting for a queue")
        s.works(s.api.queue.destroy(s.handle, queue), "queue.destroy")

    body()
    before = _held()
    settles(body, 125, "a queue")
    _not_grown(before)


@case("queue", "positive", tier="full")
def batches_come_back(s: Subject) -> None:
    """A hundred and fifty batches of two hundred commands."""
    buffer, queue, done, turn = s.memory(1024), s.queue(), s.timeline(), 0
    batch = Batch()
    for i in range(200):
        batch.fill(Range(buffer, 4 * i, 4), i)

    def body() -> None:
        nonlocal turn
        turn += 1
        s.works(s.submit(queue, batch, signal=[(done, turn)]), "queue.submit")
        s.works(s.wait(done, turn), "waiting for a batch")

    settles(body, 150, "a batch of 200")


@case("queue", "positive", tier="full")
def refused_batches_come_back(s: Subject) -> None:
    """Five hundred whose last command of two hundred is wrong."""
    buffer, queue = s.memory(1024), s.queue()
    batch = Batch()
    for i in range(200):
        batch.fill(Range(buffer, 4 * i, 4), i)
    batch.fill(Range(buffer, 1024, 4), 0)

    def body() -> None:
        s.refuses(s.submit(queue, batch), abi.BP_INVALID_ARGUMENT, "a wrong batch")

    settles(body, 500, "a refused batch")


@case("core", "positive", tier="full")
def devices_come_back(s: Subject) -> None:
    """Twenty-five opens with memory, a queue and a timeline, closed without giving any back."""

    def body() -> None:
        other = Subject(s.backend, s.index)
        other.completes(fill(other.memory(256 << 10), 1), "a fill")
        other.queue()
        other.close()

    for _ in range(3):
        body()
    before = _held()
    settles(body, 25, "a device", warm=5)
    _not_grown(before)


@case("module_native", "positive", tier="full")
def modules_come_back(s: Subject) -> None:
    """Four hundred loads with every kernel asked for."""

    def body() -> None:
        module = s.device.load_native_module(s.code_path("native"))
        for name in module.kernels():
            module.kernel(name)
        module.unload()

    settles(body, 400, "a module")


@case("pin_host", "positive", tier="full")
def pins_come_back(s: Subject) -> None:
    """Five thousand over the same bytes."""
    storage, out = ffi.new("char[]", 4096), ffi.new("uint64_t *")

    def body() -> None:
        for _ in range(100):
            s.works(s.api.mem.pin(s.handle, storage, 4096, out), "mem.pin")
            s.works(s.api.mem.release(s.handle, out[0]), "releasing a pin")

    settles(body, 50, "a hundred pins")
