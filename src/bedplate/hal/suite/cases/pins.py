"""pin_host: the caller's own memory behind a handle."""

from __future__ import annotations

from typing import Any

from bedplate.hal import abi
from bedplate.hal.batch import Batch
from bedplate.hal.buffer import Buffer, Range
from bedplate.hal.native import ffi, new
from bedplate.hal.suite.cases.mem import describe
from bedplate.hal.suite.registry import case
from bedplate.hal.suite.subject import Subject, expect

BAD = abi.BP_INVALID_ARGUMENT


def pin(s: Subject, storage: Any, bytes: int, at: int = 0) -> Buffer:
    """A handle over `bytes` of the caller's storage from `at`."""
    out = ffi.new("uint64_t *")
    s.works(s.api.mem.pin(s.handle, storage + at, bytes, out), f"pinning {bytes} bytes at {at}")
    return Buffer(s.device, int(out[0]), bytes, 0)


@case("pin_host", "positive")
def odd_places_can_be_pinned(s: Subject) -> None:
    """61 bytes from an odd address: all of them move, none beside."""
    storage, copy = ffi.new("char[]", bytes(range(80))), s.memory(61)
    pinned = pin(s, storage, 61, 3)
    batch = Batch()
    batch.copy(copy, pinned)
    batch.copy(Range(pinned, 60, 1), Range(pinned, 0, 1))
    s.completes(batch, "copies of pinned memory")
    expect(s.content(copy) == bytes(range(3, 64)), "a copy of pinned memory is wrong")
    wanted = bytes(range(63)) + b"\x03" + bytes(range(64, 80))
    expect(bytes(ffi.buffer(storage, 80)) == wanted, "a copy into pinned memory went elsewhere")
    pinned.release()


@case("pin_host", "positive")
def pinned_memory_is_described(s: Subject) -> None:
    """Its size is what was pinned; a host pointer, if there is one, is the caller's."""
    storage = ffi.new("char[]", 100)
    pinned = pin(s, storage, 100)
    told = describe(s, pinned.handle)
    expect(told.bytes == 100, f"100 pinned bytes say they are {told.bytes}")
    expect(told.host in (ffi.NULL, ffi.cast("void *", storage)), "the pointer is another one")
    pinned.release()


@case("pin_host", "positive")
def release_leaves_the_callers_bytes(s: Subject) -> None:
    """They are neither freed nor changed, and can be pinned again."""
    storage = ffi.new("char[]", b"\x2b" * 64)
    for _ in range(10):
        pin(s, storage, 64).release()
    expect(bytes(ffi.buffer(storage, 64)) == b"\x2b" * 64, "releasing a pin changed the bytes")


@case("pin_host", "positive")
def parts_are_pinned_one_by_one(s: Subject) -> None:
    """Two halves of one storage are two memories, and a copy goes from one to the other."""
    storage = ffi.new("char[]", b"\x01" * 64 + b"\x02" * 64)
    first, second = pin(s, storage, 64), pin(s, storage, 64, 64)
    batch = Batch()
    batch.copy(second, first)
    s.completes(batch, "a copy between two pins")
    expect(bytes(ffi.buffer(storage, 128)) == b"\x01" * 128, "the copy between pins is wrong")
    first.release()
    second.release()


@case("pin_host", "positive")
def a_pin_in_flight_survives_release(s: Subject) -> None:
    """Released behind a held batch, its bytes are still there for it."""
    storage, copy = ffi.new("char[]", b"\x33" * 64), s.memory(64)
    pinned, queue, gate, done = pin(s, storage, 64), s.queue(), s.timeline(), s.timeline()
    batch = Batch()
    batch.copy(copy, pinned)
    s.works(s.submit(queue, batch, wait=[(gate, 1)], signal=[(done, 1)]), "queue.submit")
    pinned.release()
    s.works(s.api.timeline.signal(s.handle, gate, 1), "timeline.signal")
    s.works(s.wait(done, 1), "waiting for a copy of a released pin")
    expect(s.content(copy) == b"\x33" * 64, "the pin went while a batch needed it")


@case("pin_host", "negative")
def a_released_pin_is_stale(s: Subject) -> None:
    """In a command, for describe, for a second release."""
    storage = ffi.new("char[]", 64)
    pinned = pin(s, storage, 64)
    handle, batch = pinned.handle, Batch()
    batch.fill(pinned, 0)
    pinned.release()
    s.refused_batch(batch, BAD, "a fill of a released pin")
    info = new("bp_memory_info")
    s.refuses(s.api.mem.describe(s.handle, handle, info), BAD, "describing a released pin")
    s.refuses(s.api.mem.release(s.handle, handle), BAD, "releasing a pin twice")


@case("pin_host", "negative")
def a_pin_has_an_end(s: Subject) -> None:
    """A byte past it is refused, though the caller's storage goes on; nothing is written."""
    storage = ffi.new("char[]", b"\x11" * 128)
    pinned = pin(s, storage, 64)
    for offset, length in ((0, 68), (64, 4), (1, (1 << 64) - 4)):
        batch = Batch()
        batch.fill(Range(pinned, offset, length), 0)
        s.refused_batch(batch, BAD, f"a fill of {length} bytes at {offset} of a pin of 64")
    expect(bytes(ffi.buffer(storage, 128)) == b"\x11" * 128, "a refused fill wrote something")
    pinned.release()


@case("pin_host", "negative")
def a_pin_wants_a_place(s: Subject) -> None:
    """A null result, and a device that is closed."""
    storage, out = ffi.new("char[]", 64), ffi.new("uint64_t *")
    s.refuses(s.api.mem.pin(s.handle, storage, 64, ffi.NULL), BAD, "pinning without a result")
    other = Subject(s.backend, s.index)
    handle = other.handle
    other.close()
    s.refuses(s.api.mem.pin(handle, storage, 64, out), BAD, "pinning on a closed device")
