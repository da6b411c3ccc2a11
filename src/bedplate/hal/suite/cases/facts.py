"""core: what a backend says of its devices without opening them, and that it stays so."""

from __future__ import annotations

from typing import Any

from bedplate.hal import abi
from bedplate.hal.device import read_claims, read_info
from bedplate.hal.native import ffi, new
from bedplate.hal.suite.registry import case
from bedplate.hal.suite.subject import Subject, expect

BAD = abi.BP_INVALID_ARGUMENT


def facts_of(s: Subject) -> Any:
    """The properties of the device under test."""
    facts = new("bp_device_properties")
    s.works(s.api.core.properties(s.index, facts), "core.properties")
    return facts


def _bytes(text: Any) -> bytes:
    return bytes(ffi.buffer(text.data, text.length)) if text.length else b""


@case("core", "positive", catches=["changing_facts"])
def facts_do_not_change(s: Subject) -> None:
    """Two questions, with work and another open between them, get one answer."""
    before = read_info(s.backend, s.index)
    other = Subject(s.backend, s.index)
    other.close()
    expect(read_info(s.backend, s.index) == before, "the facts of a device changed")


@case("core", "positive")
def facts_outlive_the_device(s: Subject) -> None:
    """Text that was given out is still there after closing and asking again."""
    facts = facts_of(s)
    name, driver = _bytes(facts.name), _bytes(facts.driver)
    for _ in range(20):
        other = Subject(s.backend, s.index)
        other.close()
        facts_of(s)
    expect((_bytes(facts.name), _bytes(facts.driver)) == (name, driver), "a text went away")


@case("core", "positive")
def facts_are_utf8(s: Subject) -> None:
    """Name, driver, and every key and value."""
    facts = facts_of(s)
    pairs = [facts.properties[i] for i in range(facts.property_count)]
    texts = [facts.name, facts.driver, *(p.key for p in pairs), *(p.value for p in pairs)]
    for raw in map(_bytes, texts):
        expect("\ufffd" not in raw.decode("utf-8", errors="replace"), f"{raw!r} is not UTF-8")


@case("core", "positive")
def properties_are_named_once(s: Subject) -> None:
    """No key twice, none empty, none without a dot."""
    facts = facts_of(s)
    keys = [_bytes(facts.properties[i].key) for i in range(facts.property_count)]
    expect(len(set(keys)) == len(keys), f"a property comes twice: {keys}")
    wrong = [key for key in keys if b"." not in key.strip(b".")]
    expect(not wrong, f"properties without a dotted name: {wrong}")


@case("core", "positive")
def properties_clear_an_unknown_tail(s: Subject) -> None:
    """What a newer caller has beyond the struct becomes zero, what is further stays."""
    size = abi.LAYOUT["bp_device_properties"][0]
    storage = ffi.new("char[]", b"\x7f" * (size + 48))
    facts = ffi.cast("bp_device_properties *", storage)
    facts.head.struct_version, facts.head.struct_size = 1, size + 24
    s.works(s.api.core.properties(s.index, facts), "core.properties of a longer struct")
    tail = bytes(ffi.buffer(storage, size + 48))[size:]
    expect(tail == bytes(24) + b"\x7f" * 24, "the tail of a longer struct is not zero")


@case("core", "negative")
def properties_want_a_head(s: Subject) -> None:
    """A size below the head and another version are refused, and nothing is written."""
    for version, size in ((1, 0), (1, 4), (0, 64), (2, 64)):
        facts = new("bp_device_properties", memory_bytes=0x5A5A)
        facts.head.struct_version, facts.head.struct_size = version, size
        what = f"core.properties of version {version} and size {size}"
        s.refuses(s.api.core.properties(s.index, facts), BAD, what)
        expect(facts.memory_bytes == 0x5A5A, "a refused struct was written")


@case("core", "positive")
def claims_have_values(s: Subject) -> None:
    """1 for a flag, at least 1 for a count or a size."""
    count, room = ffi.new("uint32_t *"), ffi.new("bp_capability[]", 256)
    s.works(s.api.core.capabilities(s.index, room, 256, count), "core.capabilities")
    for i in range(count[0]):
        flag = room[i].type == abi.BP_CAPABILITY_FLAG
        right = room[i].value == 1 if flag else room[i].value >= 1
        expect(right, f"capability {room[i].id} of type {room[i].type} has {room[i].value}")


@case("core", "positive")
def claims_do_not_change(s: Subject) -> None:
    """An open device, and work on it, add and remove none."""
    before = read_claims(s.backend, s.index)
    other = Subject(s.backend, s.index)
    expect(read_claims(s.backend, s.index) == before, "opening a device changed its claims")
    other.close()
    expect(read_claims(s.backend, s.index) == before, "closing a device changed its claims")


@case("core", "negative")
def claims_want_a_place(s: Subject) -> None:
    """No count, and room that is counted but null."""
    room, count = ffi.new("bp_capability[]", 4), ffi.new("uint32_t *")
    s.refuses(s.api.core.capabilities(s.index, room, 4, ffi.NULL), BAD, "claims without a count")
    s.refuses(s.api.core.capabilities(s.index, ffi.NULL, 4, count), BAD, "claims without room")


@case("core", "positive")
def nearly_known_tables_are_null(s: Subject) -> None:
    """A name that is shorter or longer than a known one is another name."""
    for words in (b"bp.ops", b"bp.ops.", b"bp.ops.11", b"bp.ops.1 ", b"BP.OPS.1"):
        data = ffi.new("char[]", words)
        name = ffi.new("bp_text *", {"data": data, "length": len(words)})
        expect(s.api.ext(name) == ffi.NULL, f"ext knows {words.decode()!r}")


@case("ops", "positive")
def the_length_ends_a_name(s: Subject) -> None:
    """Text has no terminator: what lies behind it is not part of it."""
    data = ffi.new("char[]", b"bp.ops.123")
    name = ffi.new("bp_text *", {"data": data, "length": 8})
    expect(s.api.ext(name) != ffi.NULL, "ext read behind the end of a name")


@case("core", "positive")
def many_opens_live_side_by_side(s: Subject) -> None:
    """Eight, with handles of their own, closed in another order than opened."""
    opens = [Subject(s.backend, s.index) for _ in range(8)]
    expect(len({one.handle for one in opens}) == 8, "two opens have one handle")
    for at in (3, 0, 7, 5, 1, 6, 2, 4):
        opens[at].timeline()
        opens[at].close()
    expect(s.value(s.timeline(7)) == (abi.BP_OK, 7), "closing others harmed a device")


@case("core", "negative")
def wild_device_handles_are_refused(s: Subject) -> None:
    """0, all ones, another generation, another slot: for closing and for work."""
    out = ffi.new("uint64_t *")
    for wild in (0, (1 << 64) - 1, s.handle + (1 << 32), s.handle ^ (1 << 63), s.handle + 4000):
        s.refuses(s.api.core.close(wild), BAD, f"closing 0x{wild:x}")
        status = s.api.timeline.create(wild, 0, out)
        s.refuses(status, BAD, f"timeline.create on 0x{wild:x}")
    expect(s.value(s.timeline(5)) == (abi.BP_OK, 5), "a wild handle closed the device")
