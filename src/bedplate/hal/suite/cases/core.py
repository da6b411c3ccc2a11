"""core: devices, errors."""

from __future__ import annotations

import numpy as np

from bedplate.hal import abi
from bedplate.hal.native import ffi, new
from bedplate.hal.suite.registry import case
from bedplate.hal.suite.subject import Subject, expect

GONE = (abi.BP_INVALID_ARGUMENT, abi.BP_NOT_FOUND)


@case("core", "positive")
def enumerate_is_stable(s: Subject) -> None:
    """Two listings agree, and the device under test is in them."""
    counts = [s.backend.device_count() for _ in range(2)]
    expect(counts[0] == counts[1] > s.index, f"two listings gave {counts}")


@case("core", "positive")
def properties_say_who_it_is(s: Subject) -> None:
    """Name, driver and memory are there without opening."""
    info = s.info
    expect(info.name and info.driver, "it has no name or no driver version")
    expect(info.memory_bytes > 0, "it has no memory")


@case("core", "positive")
def properties_may_be_asked_short(s: Subject) -> None:
    """A caller that knows only the name gets the name and nothing behind it."""
    _, offsets = abi.LAYOUT["bp_device_properties"]
    facts = new("bp_device_properties")
    facts.head.struct_size = offsets["driver"]
    facts.memory_bytes = 0x5A5A
    s.works(s.api.core.properties(s.index, facts), "core.properties")
    expect(facts.name.length > 0, "the name is missing")
    expect(facts.memory_bytes == 0x5A5A, "bytes behind the caller's struct were written")


@case("core", "positive")
def capabilities_respect_capacity(s: Subject) -> None:
    """The count is the true one; no entry past the capacity is written."""
    count = ffi.new("uint32_t *")
    s.works(s.api.core.capabilities(s.index, ffi.NULL, 0, count), "capabilities of capacity 0")
    room = ffi.new("bp_capability[]", [(77, 77, 77)] * (count[0] + 1))
    given = max(count[0] - 1, 0)
    s.works(s.api.core.capabilities(s.index, room, given, count), "capabilities")
    expect(room[given].id == 77, "an entry past the capacity was written")


@case("core", "positive")
def capabilities_are_named_once(s: Subject) -> None:
    """No claim twice, none without a known type."""
    count = ffi.new("uint32_t *")
    room = ffi.new("bp_capability[]", 256)
    s.works(s.api.core.capabilities(s.index, room, 256, count), "capabilities")
    found = [(room[i].id, room[i].type) for i in range(min(count[0], 256))]
    expect(len({number for number, _ in found}) == len(found), "a capability is claimed twice")
    wrong = [kind for _, kind in found if kind not in abi.CAPABILITY_TYPE_NAMES]
    expect(not wrong, f"a capability has the unknown type {wrong[:1]}")


@case("core", "positive")
def the_host_can_reach_its_memory(s: Subject) -> None:
    """By a pointer, or by copies from and to pinned memory: both ways there and back."""
    reach = s.info.claims & {"host_visible", "pin_host"}
    expect(reach, "it claims neither host_visible nor pin_host, so nothing can be put on it")
    buffer, wanted = s.memory(4096), np.arange(1024, dtype="u4")
    s.put(buffer, wanted)
    expect(s.words(buffer, "u4") == wanted.tolist(), "what was put there is not what is read back")


@case("core", "positive", catches=["text_overflow"])
def last_error_respects_capacity(s: Subject) -> None:
    """The text is cut and terminated, its true length told, nothing behind it written."""
    s.api.core.close(0)
    length = ffi.new("uint64_t *")
    s.works(s.api.core.last_error(ffi.NULL, 0, length), "last_error without a buffer")
    whole = length[0]
    expect(whole > 8, "the refusal of a null handle left no sentence")
    s.api.core.close(0)
    buffer = ffi.new("char[]", b"\x7f" * 31)
    s.works(s.api.core.last_error(buffer, 8, length), "last_error with 8 bytes")
    raw = bytes(ffi.buffer(buffer, 31))
    expect(length[0] == whole, f"the length is {length[0]} of {whole}")
    expect(raw[7] == 0, "a cut text is not terminated")
    expect(raw[8:] == b"\x7f" * 23, "bytes behind the buffer were written")


@case("core", "positive", catches=["no_error_text"])
def a_refusal_leaves_a_sentence(s: Subject) -> None:
    """Each table's refusal of a null handle says something."""
    out = ffi.new("uint64_t *")
    bad = abi.BP_INVALID_ARGUMENT
    s.refuses(s.api.mem.release(s.handle, 0), bad, "mem.release of 0")
    s.refuses(s.api.queue.destroy(s.handle, 0), bad, "queue.destroy of 0")
    s.refuses(s.api.timeline.query(s.handle, 0, out), bad, "timeline.query of 0")


@case("core", "positive")
def every_open_is_separate(s: Subject) -> None:
    """Handles of one open are unknown to another, and closing one leaves the other."""
    other = Subject(s.backend, s.index)
    try:
        mine = s.timeline()
        status = other.api.timeline.destroy(other.handle, mine)
        other.refuses(status, abi.BP_INVALID_ARGUMENT, "destroying another device's timeline")
    finally:
        other.close()
    expect(s.value(mine)[0] == abi.BP_OK, "closing another device took ours along")


@case("core", "positive")
def unknown_tables_are_null(s: Subject) -> None:
    """ext answers null for a name it does not know, and for none."""
    data = ffi.new("char[]", b"bp.nonsense.9")
    name = ffi.new("bp_text *", {"data": data, "length": len(data) - 1})
    empty = ffi.new("bp_text *")
    expect(s.api.ext(name) == ffi.NULL, "ext knows bp.nonsense.9")
    expect(s.api.ext(empty) == ffi.NULL, "ext knows the empty name")


@case("core", "negative")
def a_device_past_the_end_is_refused(s: Subject) -> None:
    """open, properties and capabilities of an index that is not there."""
    index, out = s.backend.device_count(), ffi.new("uint64_t *")
    s.refuses(s.api.core.open(index, out), GONE, "opening a device past the end")
    s.refuses(s.api.core.properties(index, new("bp_device_properties")), GONE, "its properties")
    count = ffi.new("uint32_t *")
    s.refuses(s.api.core.capabilities(index, ffi.NULL, 0, count), GONE, "its capabilities")


@case("core", "negative")
def no_place_for_the_result(s: Subject) -> None:
    """A null result is refused, not written."""
    bad = abi.BP_INVALID_ARGUMENT
    s.refuses(s.api.core.enumerate(ffi.NULL), bad, "core.enumerate without a result")
    s.refuses(s.api.core.open(s.index, ffi.NULL), bad, "core.open without a result")
    s.refuses(s.api.core.properties(s.index, ffi.NULL), bad, "core.properties without a result")


@case("core", "negative")
def a_closed_device_is_stale(s: Subject) -> None:
    """Every table refuses it, a second close too."""
    other = Subject(s.backend, s.index)
    handle = other.handle
    other.close()
    out, bad = ffi.new("uint64_t *"), abi.BP_INVALID_ARGUMENT
    s.refuses(s.api.core.close(handle), bad, "closing twice")
    info = new("bp_memory_info", bytes=64)
    s.refuses(s.api.mem.create(handle, info, out), bad, "mem.create on a closed device")
    queue = new("bp_queue_info")
    s.refuses(s.api.queue.create(handle, queue, out), bad, "queue.create on a closed device")
    s.refuses(s.api.timeline.create(handle, 0, out), bad, "timeline.create on a closed device")


@case("core", "negative")
def a_handle_of_another_kind_is_refused(s: Subject) -> None:
    """A timeline is no memory, no queue and no device."""
    timeline, bad = s.timeline(), abi.BP_INVALID_ARGUMENT
    s.refuses(s.api.mem.release(s.handle, timeline), bad, "releasing a timeline as memory")
    s.refuses(s.api.queue.destroy(s.handle, timeline), bad, "destroying a timeline as a queue")
    s.refuses(s.api.core.close(timeline), bad, "closing a timeline as a device")
