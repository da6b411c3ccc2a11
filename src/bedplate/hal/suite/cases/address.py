"""address_reserve: address space without memory, and memory put behind it.

Only memory that asked for an alignment of 2 MiB, and is whole multiples of it,
has to be mappable; reserved ranges stay until the device is closed.
"""

from __future__ import annotations

from bedplate.hal import abi
from bedplate.hal.batch import U32, U64, Batch
from bedplate.hal.buffer import Buffer
from bedplate.hal.native import ffi
from bedplate.hal.suite.cases.mem import create
from bedplate.hal.suite.registry import NotRun, case
from bedplate.hal.suite.subject import Subject, expect

BAD = abi.BP_INVALID_ARGUMENT
UNIT = 2 << 20


def reserve(s: Subject, bytes: int) -> int:
    """The first address of a new range."""
    out = ffi.new("uint64_t *")
    s.works(s.api.mem.reserve(s.handle, bytes, UNIT, out), "mem.reserve")
    expect(out[0] and out[0] % UNIT == 0, f"the reserved address 0x{out[0]:x} is not aligned")
    return int(out[0])


def whole(s: Subject, bytes: int = UNIT) -> Buffer:
    """Memory that may be mapped."""
    status, handle = create(s, bytes=bytes, alignment=UNIT)
    s.works(status, "mem.create aligned to 2 MiB")
    return Buffer(s.device, handle, bytes, 0)


def span(memory: Buffer, offset: int = 0, length: int | None = None) -> object:
    """A raw range of a memory."""
    given = memory.bytes if length is None else length
    return ffi.new("bp_range *", (memory.handle, offset, given))


def poke(s: Subject, address: int, value: int) -> None:
    """Write a word at an address with a kernel."""
    if s.code not in ("native", "ptx"):
        raise NotRun("it needs a kernel that takes an address as a number")
    batch = Batch()
    batch.launch(s.kernel("store"), (1,), [U64(address), U32(value)])
    s.completes(batch, "a launch with an address")


@case("address_reserve", "positive")
def mapped_memory_is_the_same(s: Subject) -> None:
    """What a kernel writes at the mapped address is in the memory, at two places in turn."""
    place, memory, api = reserve(s, 2 * UNIT), whole(s), s.api.mem
    for turn, address in enumerate((place, place + UNIT)):
        s.works(api.map(s.handle, address, span(memory)), "mem.map")
        poke(s, address + 4, turn + 7)
        s.works(api.unmap(s.handle, address, UNIT), "mem.unmap")
        expect(s.words(memory, "u4")[1] == turn + 7, "mapped memory is not the memory")


@case("address_reserve", "positive")
def two_memories_lie_side_by_side(s: Subject) -> None:
    """Behind one range, each in its half."""
    place, low, high = reserve(s, 2 * UNIT), whole(s), whole(s)
    s.works(s.api.mem.map(s.handle, place, span(low)), "mem.map")
    s.works(s.api.mem.map(s.handle, place + UNIT, span(high)), "mem.map")
    poke(s, place + UNIT - 4, 1)
    poke(s, place + UNIT, 2)
    told = s.words(low, "u4")[-1], s.words(high, "u4")[0]
    expect(told == (1, 2), f"side by side, two memories hold {told}")


@case("address_reserve", "negative")
def odd_ranges_are_refused(s: Subject) -> None:
    """Nothing, half a unit, an alignment that is no power of two, no result."""
    out = ffi.new("uint64_t *")
    for bytes, alignment in ((0, UNIT), (UNIT // 2, UNIT), (UNIT, 3)):
        status = s.api.mem.reserve(s.handle, bytes, alignment, out)
        s.refuses(status, BAD, f"reserving {bytes} bytes aligned to {alignment}")
    s.refuses(s.api.mem.reserve(s.handle, UNIT, UNIT, ffi.NULL), BAD, "reserving without a result")


@case("address_reserve", "negative")
def wrong_maps_are_refused(s: Subject) -> None:
    """A part of a memory, stale memory, a place not reserved or taken, and unmapping nothing."""
    place, memory, api = reserve(s, UNIT), whole(s), s.api.mem
    s.refuses(api.map(s.handle, place, span(memory, 4096, 4096)), BAD, "mapping a part")
    s.refuses(api.map(s.handle, place + UNIT, span(memory)), BAD, "mapping past the range")
    s.refuses(api.map(s.handle, place, ffi.NULL), BAD, "mapping nothing")
    stale = ffi.new("bp_range *", (1 << 40, 0, UNIT))
    s.refuses(api.map(s.handle, place, stale), BAD, "mapping stale memory")
    s.refuses(api.unmap(s.handle, place, UNIT), BAD, "unmapping what is not mapped")
    s.works(api.map(s.handle, place, span(memory)), "mem.map")
    s.refuses(api.map(s.handle, place, span(whole(s))), (abi.BP_BUSY, BAD), "mapping twice")
    s.works(api.unmap(s.handle, place, UNIT), "mem.unmap")
