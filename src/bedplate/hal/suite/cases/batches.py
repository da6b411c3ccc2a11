"""queue: a batch as a whole: all of it or none, limits, independence of its caller."""

from __future__ import annotations

from typing import Any

import numpy as np

from bedplate.hal import abi
from bedplate.hal.batch import Batch
from bedplate.hal.buffer import Range
from bedplate.hal.native import ffi
from bedplate.hal.suite.registry import case
from bedplate.hal.suite.subject import LOOK_NS, Subject, expect

BAD = abi.BP_INVALID_ARGUMENT


def fill(buffer: Any, value: int) -> Batch:
    """A batch of one fill."""
    batch = Batch()
    batch.fill(buffer, value * 0x01010101)
    return batch


@case("queue", "positive", tier="full")
def twenty_thousand_commands_are_one_batch(s: Subject) -> None:
    """Each writes its own word."""
    count = 20_000
    buffer = s.memory(4 * count)
    batch = Batch()
    for i in range(count):
        batch.fill(Range(buffer, 4 * i, 4), i + 1)
    s.completes(batch, f"a batch of {count}")
    words = np.frombuffer(s.content(buffer), "u4")
    expect((words == np.arange(1, count + 1)).all(), "a command of a large batch did not run")


@case("queue", "positive", tier="full")
def a_batch_may_be_of_any_length(s: Subject) -> None:
    """Growing and shrinking from one to the next on one queue."""
    buffer, queue, done = s.memory(4 * 300), s.queue(), s.timeline()
    for turn, count in enumerate((1, 300, 2, 150, 0, 299, 3), 1):
        batch = Batch()
        for i in range(count):
            batch.fill(Range(buffer, 4 * i, 4), 1000 * turn + i)
        s.works(s.submit(queue, batch, signal=[(done, turn)]), f"a batch of {count}")
        s.works(s.wait(done, turn), f"waiting for a batch of {count}")
        words = np.frombuffer(s.content(buffer), "u4")[:count]
        expect((words == 1000 * turn + np.arange(count)).all(), f"a batch of {count} is wrong")


@case("queue", "positive", tier="full")
def two_hundred_fences_on_each_side(s: Subject) -> None:
    """All are waited for, all are signalled."""
    waits, signals = [s.timeline() for _ in range(200)], [s.timeline() for _ in range(200)]
    queue = s.queue()
    status = s.submit(
        queue, Batch(), wait=[(t, 1) for t in waits], signal=[(t, 3) for t in signals]
    )
    s.works(status, "a batch of 200 waits and 200 signals")
    for timeline in waits[:-1]:
        s.works(s.api.timeline.signal(s.handle, timeline, 1), "timeline.signal")
    s.refuses(s.wait(signals[0], 3, LOOK_NS), abi.BP_DEADLINE, "199 of 200 fences")
    s.works(s.api.timeline.signal(s.handle, waits[-1], 1), "timeline.signal")
    for timeline in signals:
        s.works(s.wait(timeline, 3), "waiting for one of 200 signals")


@case("queue", "positive")
def one_timeline_may_be_waited_for_twice(s: Subject) -> None:
    """The larger value counts, wherever it stands."""
    queue, gate, done = s.queue(), s.timeline(), s.timeline()
    status = s.submit(queue, Batch(), wait=[(gate, 2), (gate, 1)], signal=[(done, 1)])
    s.works(status, "a batch with two waits of one timeline")
    s.works(s.api.timeline.signal(s.handle, gate, 1), "timeline.signal")
    s.refuses(s.wait(done, 1, LOOK_NS), abi.BP_DEADLINE, "a batch whose second fence is held")
    s.works(s.api.timeline.signal(s.handle, gate, 2), "timeline.signal")
    s.works(s.wait(done, 1), "waiting for a batch that is free")


@case("queue", "positive")
def one_timeline_may_be_signalled_twice(s: Subject) -> None:
    """In growing order it ends at the last."""
    queue, done = s.queue(), s.timeline()
    status = s.submit(queue, Batch(), signal=[(done, 3), (done, 8)])
    s.works(status, "a batch with two signals of one timeline")
    s.works(s.wait(done, 8), "waiting for the second signal")
    expect(s.value(done) == (abi.BP_OK, 8), "the timeline is not at the last signal")


@case("queue", "positive")
def the_past_is_no_obstacle(s: Subject) -> None:
    """Fences at 0, at and below the value let a batch through."""
    queue, past, done = s.queue(), s.timeline(10), s.timeline()
    status = s.submit(queue, Batch(), wait=[(past, 0), (past, 10), (past, 4)], signal=[(done, 1)])
    s.works(status, "a batch that waits for the past")
    s.works(s.wait(done, 1), "waiting for a batch that nothing holds")


@case("queue", "positive", catches=["wide_signal"])
def a_signal_is_the_value_given(s: Subject) -> None:
    """Beyond 32 bits, up to the largest; a gap is a gap."""
    queue = s.queue()
    for value in (1, (1 << 32) + 5, (1 << 64) - 1):
        done = s.timeline()
        s.works(s.submit(queue, Batch(), signal=[(done, value)]), "queue.submit")
        s.works(s.wait(done, value), f"waiting for {value}")
        expect(s.value(done) == (abi.BP_OK, value), f"signalled to {value}: {s.value(done)}")


@case("queue", "positive", tier="full")
def submit_does_not_wait(s: Subject) -> None:
    """A thousand batches queue up behind a closed gate, and then all run."""
    buffer, queue, gate, done = s.memory(64), s.queue(), s.timeline(), s.timeline()
    s.works(s.submit(queue, Batch(), wait=[(gate, 1)]), "queue.submit")
    for turn in range(1, 1001):
        batch = fill(buffer, turn % 251)
        s.works(s.submit(queue, batch, signal=[(done, turn)]), f"batch {turn} behind a gate")
    expect(s.value(done) == (abi.BP_OK, 0), "a batch passed the one before it")
    s.works(s.api.timeline.signal(s.handle, gate, 1), "timeline.signal")
    s.works(s.wait(done, 1000), "waiting for a thousand batches")
    expect(s.content(buffer) == bytes([1000 % 251]) * 64, "the last batch is not what is left")


@case("queue", "positive")
def flush_does_not_wait(s: Subject) -> None:
    """With a batch that cannot begin it returns, and nothing has run."""
    buffer, queue, gate, done = s.memory(64), s.queue(), s.timeline(), s.timeline()
    status = s.submit(queue, fill(buffer, 1), wait=[(gate, 1)], signal=[(done, 1)])
    s.works(status, "queue.submit")
    for _ in range(3):
        s.works(s.api.queue.flush(s.handle, queue), "flushing a held queue")
    expect(s.value(done) == (abi.BP_OK, 0), "flush let a held batch through")
    s.works(s.api.timeline.signal(s.handle, gate, 1), "timeline.signal")
    s.works(s.wait(done, 1), "waiting for a flushed batch")


@case("queue", "positive", catches=["hasty_empty", "overtaking_batch"])
def an_empty_batch_keeps_its_place(s: Subject) -> None:
    """Its signal comes behind the held batch before it."""
    queue, gate, first, second = s.queue(), s.timeline(), s.timeline(), s.timeline()
    s.works(s.submit(queue, Batch(), wait=[(gate, 1)], signal=[(first, 1)]), "queue.submit")
    s.works(s.submit(queue, Batch(), signal=[(second, 1)]), "queue.submit")
    s.refuses(s.wait(second, 1, LOOK_NS), abi.BP_DEADLINE, "an empty batch behind a held one")
    s.works(s.api.timeline.signal(s.handle, gate, 1), "timeline.signal")
    s.works(s.wait(second, 1), "waiting for the empty batch")
    expect(s.value(first) == (abi.BP_OK, 1), "the second batch was done before the first")


@case("queue", "positive")
def a_batch_may_be_submitted_again(s: Subject) -> None:
    """The same structs, on two queues, as often as wanted."""
    buffer, done = s.memory(64), s.timeline()
    queues, batch = (s.queue(), s.queue()), fill(buffer, 7)
    for turn in range(1, 21):
        s.works(s.submit(queues[turn % 2], batch, signal=[(done, turn)]), "queue.submit")
        s.works(s.wait(done, turn), "waiting for a batch used again")
    expect(s.content(buffer) == b"\x07" * 64, "a batch used again did not run")


@case("queue", "negative", catches=["refused_signal"])
def a_wrong_fence_refuses_all(s: Subject) -> None:
    """The last of many signals is stale: nothing runs, nothing is signalled, nothing is waited."""
    buffer, queue, good, gone = s.memory(64), s.queue(), s.timeline(), s.timeline()
    s.works(s.api.timeline.destroy(s.handle, gone), "timeline.destroy")
    status = s.submit(queue, fill(buffer, 1), signal=[(good, 1), (gone, 1)])
    s.refuses(status, BAD, "a batch with a stale signal behind a good one")
    expect(s.value(good) == (abi.BP_OK, 0), "a refused batch signalled")
    s.works(s.submit(queue, Batch(), signal=[(good, 2)]), "queue.submit after a refusal")
    s.works(s.wait(good, 2), "waiting after a refusal")
    expect(s.content(buffer) == bytes(64), "a refused batch ran")


@case("queue", "negative", catches=["partial_batch"])
def each_command_of_a_batch_is_checked(s: Subject) -> None:
    """One wrong command at the front, in the middle, at the end; its place is named."""
    buffer, queue, done = s.memory(64, 0x66), s.queue(), s.timeline()
    for at in (0, 17, 39):
        batch = Batch()
        for i in range(40):
            batch.fill(Range(buffer, 64 if i == at else 0, 4), 0)
        text = s.refuses(s.submit(queue, batch), BAD, f"a batch whose command {at} is wrong")
        expect(str(at) in text, f"the refusal does not name command {at}: {text}")
    s.works(s.submit(queue, Batch(), signal=[(done, 1)]), "queue.submit after refusals")
    s.works(s.wait(done, 1), "waiting after refusals")
    expect(s.content(buffer) == b"\x66" * 64, "a refused batch ran in part")


@case("queue", "negative")
def signals_that_are_missing_are_refused(s: Subject) -> None:
    """A count without an array."""

    def null_signals(batch: Any) -> None:
        batch.signal_count, batch.signal = 2, ffi.NULL

    status = s.submit(s.queue(), Batch(), change=null_signals)
    s.refuses(status, BAD, "a batch that counts signals and has none")


@case("queue", "negative", tier="full")
def refusals_do_not_wear_a_queue_out(s: Subject) -> None:
    """Two hundred refused batches later it works as before."""
    buffer, queue, done = s.memory(64), s.queue(), s.timeline()
    wrong = Batch()
    wrong.fill(buffer, 0)
    wrong.fill(Range(buffer, 64, 4), 0)
    for _ in range(200):
        s.refuses(s.submit(queue, wrong), BAD, "a wrong batch")
    s.works(s.submit(queue, fill(buffer, 9), signal=[(done, 1)]), "queue.submit")
    s.works(s.wait(done, 1), "waiting after two hundred refusals")
    expect(s.content(buffer) == b"\x09" * 64, "a batch after refusals did not run")
