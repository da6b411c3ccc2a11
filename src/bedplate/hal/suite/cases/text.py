"""core.last_error: one sentence for each thread, cut where the caller's room ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from bedplate.hal import abi
from bedplate.hal.native import ffi
from bedplate.hal.suite.registry import case
from bedplate.hal.suite.subject import Subject, expect

ROOM = 4096


def read(s: Subject, capacity: int = ROOM) -> tuple[bytes, int]:
    """What last_error writes into `capacity` bytes of 0x7F, and the length it tells."""
    buffer, length = ffi.new("char[]", b"\x7f" * (capacity + 8)), ffi.new("uint64_t *")
    s.works(s.api.core.last_error(buffer, capacity, length), "core.last_error")
    return bytes(ffi.buffer(buffer, capacity + 8)), int(length[0])


def fail(s: Subject, number: int = 0) -> None:
    """Leave a sentence: a memory of an alignment that is no power of two."""
    info: Any = ffi.new("bp_memory_info *", {"bytes": 64, "alignment": 3 + 2 * number})
    info.head.struct_version, info.head.struct_size = 1, ffi.sizeof(info[0])
    status = s.api.mem.create(s.handle, info, ffi.new("uint64_t *"))
    expect(status == abi.BP_INVALID_ARGUMENT, f"an odd alignment gave {status}")


@case("core", "positive")
def the_text_is_read_as_often_as_wanted(s: Subject) -> None:
    """Reading does not forget."""
    fail(s)
    first, second = read(s), read(s)
    expect(first[1] > 0, "a refusal left no sentence")
    expect(first == second, "the second reading gave another text")


@case("core", "positive")
def the_text_needs_no_room(s: Subject) -> None:
    """Without a buffer the length, without a length the text, without either success; a buffer
    of capacity 0 stays as it is."""
    last_error, null = s.api.core.last_error, ffi.NULL
    buffer, length = ffi.new("char[]", b"\x7f" * ROOM), ffi.new("uint64_t *")
    fail(s)
    text, whole = read(s)
    for place, capacity in ((null, 0), (null, ROOM), (buffer, 0)):
        length[0] = 0
        s.works(last_error(place, capacity, length), f"last_error with capacity {capacity}")
        expect(length[0] == whole, f"the length is {length[0]} of {whole} without room for text")
        s.works(last_error(place, capacity, null), "last_error without anything")
    expect(bytes(ffi.buffer(buffer)) == b"\x7f" * ROOM + b"\0", "capacity 0 was written to")
    s.works(last_error(buffer, ROOM, null), "last_error without a length")
    expect(ffi.string(buffer) == text[:whole], "without a length another text is told")


@case("core", "positive")
def the_text_is_of_the_latest_failure(s: Subject) -> None:
    """A second refusal replaces the first."""
    fail(s)
    first = read(s)
    s.api.timeline.destroy(s.handle, 0)
    expect(read(s) != first, "two different refusals left the same text")


@case("core", "positive")
def success_keeps_the_text(s: Subject) -> None:
    """It is of the last failure, whatever worked since."""
    fail(s)
    first = read(s)
    timeline = s.timeline(3)
    s.value(timeline)
    expect(read(s) == first, "calls that worked changed the text of the last failure")


@case("core", "positive")
def a_fresh_thread_has_no_text(s: Subject) -> None:
    """Length 0 and a terminator, though another thread has failed."""
    fail(s)
    told: list[tuple[bytes, int]] = []
    thread = threading.Thread(target=lambda: told.append(read(s, 16)))
    thread.start()
    thread.join()
    expect(told and told[0][1] == 0, f"a thread that never failed has a text of {told}")
    expect(told[0][0][:1] == b"\0", "an empty text is not terminated")


@case("core", "positive", catches=["shared_text"])
def each_thread_has_its_own_text(s: Subject) -> None:
    """A failure of another thread, between ours and our reading, changes nothing."""
    fail(s)
    mine = read(s)
    thread = threading.Thread(target=lambda: s.api.queue.flush(s.handle, 0))
    thread.start()
    thread.join()
    expect(read(s) == mine, "another thread's failure replaced our text")


@case("core", "positive")
def one_byte_of_room_is_a_terminator(s: Subject) -> None:
    """Nothing else fits, and nothing else is written."""
    fail(s)
    raw, length = read(s, 1)
    expect(length > 1, f"the length of a cut text is {length}")
    expect(raw == b"\0" + b"\x7f" * 8, f"one byte of room became {raw!r}")


@case("core", "positive")
def a_text_that_fits_exactly_is_whole(s: Subject) -> None:
    """Length + 1 bytes hold it all, length bytes all but the last."""
    fail(s)
    whole, length = read(s)
    expect(read(s, length + 1)[0][: length + 1] == whole[: length + 1], "an exact fit was cut")
    short = read(s, length)[0]
    expect(short[: length - 1] == whole[: length - 1], "a cut text is not the beginning")
    expect(short[length - 1] == 0, "a cut text is not terminated")


@case("core", "positive")
def texts_are_utf8_sentences(s: Subject) -> None:
    """Of a refusal in each table: it decodes, and is more than a word."""
    out = ffi.new("uint64_t *")
    calls: list[Callable[[], int]] = [
        lambda: s.api.core.close(0),
        lambda: s.api.mem.release(s.handle, 0),
        lambda: s.api.queue.flush(s.handle, 0),
        lambda: s.api.timeline.query(s.handle, 0, out),
    ]
    for refused in calls:
        expect(refused() < 0, "a call with the handle 0 worked")
        raw, length = read(s)
        text = raw[:length].decode("utf-8", errors="replace")
        expect("\ufffd" not in text, f"a text is not UTF-8: {text}")
        expect(len(text.split()) > 2, f"a text is no sentence: {text!r}")
