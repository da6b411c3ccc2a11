"""queue: order, completeness, fences, refusal before anything runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from bedplate.hal import abi
from bedplate.hal.batch import Batch
from bedplate.hal.buffer import Range
from bedplate.hal.native import ffi, new
from bedplate.hal.suite import structs
from bedplate.hal.suite.registry import case
from bedplate.hal.suite.subject import LOOK_NS, Subject, expect

BAD = abi.BP_INVALID_ARGUMENT


@case("queue", "positive", catches=["wrong_copy"])
def copies_move_every_byte(s: Subject) -> None:
    """Lengths and offsets that are no multiple of anything; bytes around stay."""
    for length, at, to in ((1, 0, 0), (7, 3, 5), (64, 1, 2), (1000, 13, 7)):
        source, target = s.memory(1024), s.memory(1024, 0xEE)
        s.put(source, ((7 * np.arange(1024) + 1) % 251).astype("u1"))
        batch = Batch()
        batch.copy(Range(target, to, length), Range(source, at, length))
        s.completes(batch, "a copy")
        wanted = bytearray(b"\xee" * 1024)
        wanted[to : to + length] = s.content(source)[at : at + length]
        expect(s.content(target) == bytes(wanted), f"a copy of {length} bytes went wrong")


@case("queue", "positive")
def empty_copies_are_nothing(s: Subject) -> None:
    """Length 0, also at the very end."""
    source, target = s.memory(16, 1), s.memory(16, 2)
    batch = Batch()
    batch.copy(Range(target, 16, 0), Range(source, 16, 0))
    s.completes(batch, "an empty copy")
    expect(s.content(target) == b"\x02" * 16, "an empty copy changed something")


@case("queue", "positive", catches=["short_fill"])
def fills_reach_the_end(s: Subject) -> None:
    """Patterns of 1, 2 and 4 bytes over the whole range."""
    for width in (1, 2, 4):
        buffer = s.memory(64)
        batch = Batch()
        batch.fill(buffer, 0x44332211)
        batch._commands[0].pattern_bytes = width
        s.completes(batch, "a fill")
        wanted = b"\x11\x22\x33\x44"[:width] * (64 // width)
        expect(s.content(buffer) == wanted, f"a fill with {width} bytes is wrong")


@case("queue", "positive", catches=["overrun"])
def fills_stay_inside(s: Subject) -> None:
    """Bytes before and behind the range are not touched."""
    buffer = s.memory(64, 0xEE)
    batch = Batch()
    batch.fill(Range(buffer, 16, 16), 0x11111111)
    s.completes(batch, "a fill")
    wanted = b"\xee" * 16 + b"\x11" * 16 + b"\xee" * 32
    expect(s.content(buffer) == wanted, "a fill wrote outside its range")


@case("queue", "positive", catches=["reordered"])
def commands_run_in_order(s: Subject) -> None:
    """A copy sees the fill before it and not the one after it."""
    a, b = s.memory(64), s.memory(64)
    batch = Batch()
    batch.fill(a, 0x01010101)
    batch.copy(b, a)
    batch.fill(a, 0x02020202)
    s.completes(batch, "a batch of three")
    expect(s.content(b) == b"\x01" * 64, "a copy did not see the fill before it")
    expect(s.content(a) == b"\x02" * 64, "the last fill is not what is left")


@case("queue", "positive", catches=["dropped_command"])
def every_command_runs(s: Subject) -> None:
    """A batch of many fills, each of its own place."""
    buffer = s.memory(4 * 100)
    batch = Batch()
    for i in range(100):
        batch.fill(Range(buffer, 4 * i, 4), i + 1)
    s.completes(batch, "a batch of a hundred")
    missing = [i for i, n in enumerate(s.words(buffer, "u4")) if n != i + 1]
    expect(not missing, f"commands {missing[:3]} of a hundred did not run")


@case("queue", "positive")
def batches_run_in_order(s: Subject) -> None:
    """Many batches of one queue, each building on the one before."""
    a, b, queue, done = s.memory(64), s.memory(64), s.queue(), s.timeline()
    for turn in range(50):
        batch = Batch()
        batch.fill(a, turn * 0x01010101)
        batch.copy(b, a)
        s.works(s.submit(queue, batch, signal=[(done, turn + 1)]), "queue.submit")
    s.works(s.wait(done, 50), "waiting for fifty batches")
    expect(s.content(b) == bytes([49]) * 64, "batches overtook each other")


@case("queue", "positive", catches=["early_start"])
def a_wait_fence_holds_a_batch_back(s: Subject) -> None:
    """Nothing of it is seen before the fence, all of it after."""
    buffer, queue, gate, done = s.memory(64), s.queue(), s.timeline(), s.timeline()
    batch = Batch()
    batch.fill(buffer, 0x01010101)
    s.works(s.submit(queue, batch, wait=[(gate, 2)], signal=[(done, 1)]), "queue.submit")
    s.works(s.api.timeline.signal(s.handle, gate, 1), "timeline.signal")
    s.wait(done, 1, LOOK_NS)
    expect(s.content(buffer) == bytes(64), "a batch ran before its fence")
    s.works(s.api.timeline.signal(s.handle, gate, 2), "timeline.signal")
    s.works(s.wait(done, 1), "waiting behind the fence")
    expect(s.content(buffer) == b"\x01" * 64, "a batch did not run after its fence")


@case("queue", "positive", catches=["early_signal"])
def a_signal_comes_after_the_work(s: Subject) -> None:
    """While the batch is held, its signal is not given."""
    buffer, queue, gate, done = s.memory(64), s.queue(), s.timeline(), s.timeline()
    batch = Batch()
    batch.fill(buffer, 0x01010101)
    s.works(s.submit(queue, batch, wait=[(gate, 1)], signal=[(done, 1)]), "queue.submit")
    status = s.wait(done, 1, LOOK_NS)
    s.refuses(status, abi.BP_DEADLINE, "waiting for a batch that is held")
    s.works(s.api.timeline.signal(s.handle, gate, 1), "timeline.signal")
    s.works(s.wait(done, 1), "waiting for a batch that is free")
    expect(s.content(buffer) == b"\x01" * 64, "the signal came before the work")


@case("queue", "positive")
def nothing_is_read_after_submit(s: Subject) -> None:
    """The caller's structs may be overwritten at once."""
    buffer, queue, gate, done = s.memory(64), s.queue(), s.timeline(), s.timeline()
    batch = Batch()
    batch.fill(buffer, 0x01010101)
    s.works(s.submit(queue, batch, wait=[(gate, 1)], signal=[(done, 1)]), "queue.submit")
    command = batch._commands[0]
    ffi.memmove(command, b"\xff" * ffi.sizeof(command[0]), ffi.sizeof(command[0]))
    s.works(s.api.timeline.signal(s.handle, gate, 1), "timeline.signal")
    s.works(s.wait(done, 1), "waiting for a batch whose commands are gone")
    expect(s.content(buffer) == b"\x01" * 64, "a command was read after submit returned")


@case("queue", "positive")
def queues_are_independent(s: Subject) -> None:
    """One that waits does not hold another; a fence joins them."""
    buffer, gate, done = s.memory(64), s.timeline(), s.timeline()
    batch = Batch()
    batch.fill(buffer, 0x01010101)
    held, free = s.queue(), s.queue()
    s.works(s.submit(held, Batch(), wait=[(gate, 1)], signal=[(done, 2)]), "queue.submit")
    s.works(s.submit(free, batch, signal=[(gate, 1)]), "queue.submit")
    s.works(s.wait(done, 2), "waiting for the joined queue")
    expect(s.content(buffer) == b"\x01" * 64, "the joined queue did not wait for the work")


@case("queue", "positive")
def memory_in_flight_survives_release(s: Subject) -> None:
    """Released behind a held batch, it is still there for it."""
    a, b, queue, gate, done = s.memory(64), s.memory(64), s.queue(), s.timeline(), s.timeline()
    batch = Batch()
    batch.fill(a, 0x01010101)
    batch.copy(b, a)
    s.works(s.submit(queue, batch, wait=[(gate, 1)], signal=[(done, 1)]), "queue.submit")
    a.release()
    s.works(s.api.timeline.signal(s.handle, gate, 1), "timeline.signal")
    s.works(s.wait(done, 1), "waiting for a batch with released memory")
    expect(s.content(b) == b"\x01" * 64, "memory went while a batch needed it")


@case("queue", "positive")
def destroy_cancels_what_waits(s: Subject) -> None:
    """Its signal is poisoned, its commands have no effect, destroy returns."""
    buffer, queue, gate, done = s.memory(64), s.queue(), s.timeline(), s.timeline()
    batch = Batch()
    batch.fill(buffer, 0x01010101)
    s.works(s.submit(queue, batch, wait=[(gate, 1)], signal=[(done, 1)]), "queue.submit")
    s.works(s.api.queue.destroy(s.handle, queue), "queue.destroy")
    s.refuses(s.wait(done, 1), abi.BP_CANCELLED, "waiting for a cancelled batch")
    expect(s.content(buffer) == bytes(64), "a cancelled batch ran")
    s.refuses(s.api.queue.flush(s.handle, queue), BAD, "flushing a destroyed queue")


@case("queue", "positive", tier="full")
def destroy_forgets_no_batch(s: Subject) -> None:
    """Submitted a moment before: each batch ends in its value or in CANCELLED."""
    for turn in range(300):
        queue, gate, done = s.queue(), s.timeline(), s.timeline()
        if turn % 2:
            s.works(s.submit(queue, Batch()), "queue.submit")
        status = s.submit(queue, Batch(), wait=[(gate, 1)], signal=[(done, 1)])
        s.works(status, "queue.submit")
        s.works(s.api.queue.destroy(s.handle, queue), "queue.destroy")
        s.refuses(s.wait(done, 1), abi.BP_CANCELLED, f"waiting for cancelled batch {turn}")
        for timeline in (gate, done):
            s.works(s.api.timeline.destroy(s.handle, timeline), "timeline.destroy")


@case("queue", "positive")
def flush_is_allowed_any_time(s: Subject) -> None:
    """On an empty queue, and with work in it."""
    queue, done = s.queue(), s.timeline()
    s.works(s.api.queue.flush(s.handle, queue), "flushing an empty queue")
    s.works(s.submit(queue, Batch(), signal=[(done, 1)]), "queue.submit of nothing")
    s.works(s.api.queue.flush(s.handle, queue), "queue.flush")
    s.works(s.wait(done, 1), "waiting for an empty batch")


@case("queue", "negative")
def a_refused_batch_has_no_effect(s: Subject) -> None:
    """The last command is wrong: the first did not run, nothing is signalled."""
    buffer, queue, done = s.memory(64), s.queue(), s.timeline()
    batch = Batch()
    batch.fill(buffer, 0x01010101)
    batch.fill(Range(buffer, 60, 8), 0)
    text = s.refuses(s.submit(queue, batch, signal=[(done, 1)]), BAD, "a batch with a wrong end")
    expect("1" in text, f"the refusal does not name command 1: {text}")
    s.works(s.submit(queue, Batch(), signal=[(done, 5)]), "queue.submit after a refusal")
    s.works(s.wait(done, 5), "waiting after a refusal")
    expect(s.content(buffer) == bytes(64), "a refused batch ran in part")


@case("queue", "negative", catches=["range_unchecked"])
def ranges_past_the_end_are_refused(s: Subject) -> None:
    """Past the end, behind it, and where offset + length overflows; nothing is written."""
    buffer = s.memory(64, 0xEE)
    most = (1 << 64) - 1
    for offset, length in ((0, 68), (64, 4), (68, 0), (4, most - 3), (most - 3, 8)):
        batch = Batch()
        batch.fill(Range(buffer, offset, length), 0)
        s.refused_batch(batch, BAD, f"a fill of {length} bytes at {offset} of 64")
    expect(s.content(buffer) == b"\xee" * 64, "a refused fill wrote something")


@case("queue", "negative")
def copies_are_checked_on_both_sides(s: Subject) -> None:
    """Source past the end, destination past the end, unequal lengths, overlap."""
    buffer, other = s.memory(64), s.memory(32)
    for to, source in (
        (Range(buffer, 0, 40), Range(other, 0, 40)),
        (Range(other, 0, 40), Range(buffer, 0, 40)),
        (Range(buffer, 0, 40), Range(buffer, 20, 40)),
    ):
        batch = Batch()
        batch.copy(to, source)
        s.refused_batch(batch, BAD, "a copy that cannot be")
    batch = Batch()
    batch.copy(Range(buffer, 0, 16), Range(other, 0, 16))
    batch._commands[0].destination.length = 8
    s.refused_batch(batch, BAD, "a copy of 16 bytes to 8")


@case("queue", "negative")
def odd_fills_are_refused(s: Subject) -> None:
    """A length or a place that is no multiple of the pattern, a pattern of 3 bytes."""
    buffer = s.memory(64)
    for offset, length, width in ((0, 6, 4), (2, 8, 4), (0, 3, 2), (0, 12, 3), (0, 8, 0)):
        batch = Batch()
        batch.fill(Range(buffer, offset, length), 0)
        batch._commands[0].pattern_bytes = width
        s.refused_batch(batch, BAD, f"a fill of {length} bytes at {offset} by {width}")


@case("queue", "negative")
def unknown_commands_are_refused(s: Subject) -> None:
    """A kind from the future, flags from the future, a null pointer."""
    buffer = s.memory(64)
    for kind in (0, 99, (1 << 32) - 1):
        batch = Batch()
        batch.fill(buffer, 0)
        batch._commands[0].kind = kind
        s.refused_batch(batch, (abi.BP_UNSUPPORTED, BAD), f"a command of kind {kind}")
    batch = Batch()
    batch.fill(buffer, 0)
    batch._commands[0].flags = 4
    s.refused_batch(batch, BAD, "a command with unknown flags")
    batch.pointers()[0] = ffi.NULL
    s.refused_batch(batch, BAD, "a null command")


@case("queue", "negative")
def wrong_batches_are_refused(s: Subject) -> None:
    """A count without an array, unknown flags, stale fences."""
    queue = s.queue()

    def null_commands(batch: Any) -> None:
        batch.command_count, batch.commands = 3, ffi.NULL

    def null_waits(batch: Any) -> None:
        batch.wait_count, batch.wait = 1, ffi.NULL

    def flags(batch: Any) -> None:
        batch.flags = 1

    for change in (null_commands, null_waits, flags):
        status = s.submit(queue, Batch(), change=change)
        s.refuses(status, BAD, f"a batch with {change.__name__}")
    gone = s.timeline()
    s.works(s.api.timeline.destroy(s.handle, gone), "timeline.destroy")
    s.refuses(s.submit(queue, Batch(), wait=[(gone, 1)]), BAD, "waiting for a stale timeline")
    s.refuses(s.submit(queue, Batch(), signal=[(gone, 1)]), BAD, "signalling a stale timeline")
    s.refuses(s.api.queue.submit(s.handle, queue, ffi.NULL), BAD, "submitting null")


def _queue_info(s: Subject) -> tuple[Any, Any]:
    return new("bp_queue_info"), None


def _create_queue(s: Subject, info: Any) -> int:
    return int(s.api.queue.create(s.handle, info, ffi.new("uint64_t *")))


def _batch(s: Subject) -> tuple[Any, Any]:
    return new("bp_batch", tag=7), None


def _submit(s: Subject, batch: Any) -> int:
    return int(s.api.queue.submit(s.handle, s.queue(), batch))


def _command(kind: str) -> Any:
    def make(s: Subject) -> tuple[Any, Any]:
        a, b, batch = s.memory(64), s.memory(64), Batch()
        if kind == "copy":
            batch.copy(a, b)
        elif kind == "fill":
            batch.fill(a, 0)
        else:
            batch.timestamp(a)
        return batch._commands[0], (a, b, batch)

    return make


def submit_command(s: Subject, command: Any) -> int:
    """The status of submitting one raw command."""
    pointers = ffi.new("const bp_command *[]", [ffi.cast("const bp_command *", command)])
    batch = new("bp_batch", command_count=1)
    batch.commands = pointers
    return int(s.api.queue.submit(s.handle, s.queue(), batch))


structs.add(structs.StructRule("queue", "bp_queue_info", _queue_info, _create_queue))
structs.add(
    structs.StructRule(
        "queue",
        "bp_batch",
        _batch,
        _submit,
        catches=("reserved_ignored", "unknown_tail_ignored", "version_ignored"),
    )
)
for _kind in ("copy", "fill"):
    structs.add(structs.StructRule("queue", f"bp_{_kind}_command", _command(_kind), submit_command))
structs.add(
    structs.StructRule("timestamp", "bp_timestamp_command", _command("timestamp"), submit_command)
)
