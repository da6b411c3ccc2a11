"""timestamp: one clock for the device, in nanoseconds, that agrees with the order of work."""

from __future__ import annotations

import time

import numpy as np

from bedplate.hal.batch import Batch
from bedplate.hal.buffer import Range
from bedplate.hal.suite.registry import case
from bedplate.hal.suite.subject import LOOK_NS, Subject, expect


def stamp(place: Range) -> Batch:
    """A batch of one timestamp."""
    batch = Batch()
    batch.timestamp(place)
    return batch


@case("timestamp", "positive")
def time_agrees_across_queues(s: Subject) -> None:
    """What a fence orders, timestamps order too: eight queues, one after the other."""
    buffer, line = s.memory(8 * 32), s.timeline()
    queues = [s.queue() for _ in range(8)]
    for i in range(32):
        fences = {"wait": [(line, i)], "signal": [(line, i + 1)]}
        batch = stamp(Range(buffer, 8 * i, 8))
        s.works(s.submit(queues[i % 8], batch, **fences), "queue.submit")  # type: ignore[arg-type]
    s.works(s.wait(line, 32), "waiting for 32 timestamps")
    times = np.frombuffer(s.content(buffer), "u8").tolist()
    expect(times == sorted(times), "timestamps of fenced queues go back")


@case("timestamp", "positive", catches=["early_clock"])
def time_is_in_nanoseconds(s: Subject) -> None:
    """Between two timestamps around a gate passes what the host sees pass, to 2 %."""
    buffer, queue = s.memory(16), s.queue()
    gate, first, second = s.timeline(), s.timeline(), s.timeline()
    s.works(s.submit(queue, stamp(Range(buffer, 0, 8)), signal=[(first, 1)]), "queue.submit")
    before = time.monotonic_ns()
    s.works(s.wait(first, 1), "waiting for the first timestamp")
    inner = time.monotonic_ns()
    batch = stamp(Range(buffer, 8, 8))
    s.works(s.submit(queue, batch, wait=[(gate, 1)], signal=[(second, 1)]), "queue.submit")
    time.sleep(LOOK_NS / 1e9)
    held = time.monotonic_ns() - inner
    s.works(s.api.timeline.signal(s.handle, gate, 1), "timeline.signal")
    s.works(s.wait(second, 1), "waiting for the second timestamp")
    most = time.monotonic_ns() - before
    begin, end = np.frombuffer(s.content(buffer), "u8").tolist()
    expect(end - begin >= 0.98 * held, f"{end - begin} ns passed in {held} ns of the host")
    # The first batch may have run before the clock was read here.
    expect(end - begin <= 1.02 * most + LOOK_NS, f"{end - begin} ns passed in at most {most}")


@case("timestamp", "positive")
def time_goes_on_between_batches(s: Subject) -> None:
    """Fifty batches of one queue, each later than the one before or the same."""
    buffer, queue, line = s.memory(8 * 50), s.queue(), s.timeline()
    for i in range(50):
        batch = stamp(Range(buffer, 8 * i, 8))
        s.works(s.submit(queue, batch, signal=[(line, i + 1)]), "queue.submit")
    s.works(s.wait(line, 50), "waiting for fifty batches")
    times = np.frombuffer(s.content(buffer), "u8").tolist()
    expect(times == sorted(times) and times[-1] > times[0], "time stands still or goes back")


@case("timestamp", "positive")
def work_takes_time(s: Subject) -> None:
    """A timestamp behind 16 MiB of fills is later than the one before them."""
    buffer, large = s.memory(16), s.memory(4 << 20, None)
    batch = Batch()
    batch.timestamp(Range(buffer, 0, 8))
    for _ in range(4):
        batch.fill(large, 1)
    batch.timestamp(Range(buffer, 8, 8))
    s.completes(batch, "fills between timestamps")
    begin, end = np.frombuffer(s.content(buffer), "u8").tolist()
    expect(end - begin > 1000, f"16 MiB of fills took {end - begin} ns")
