"""mem, and what depends on it: host_visible, device_address, pin_host."""

from __future__ import annotations

from typing import Any

import numpy as np

from bedplate.hal import abi
from bedplate.hal.batch import U32, U64, Batch
from bedplate.hal.buffer import Buffer, Range
from bedplate.hal.native import ffi, new
from bedplate.hal.suite import structs
from bedplate.hal.suite.registry import NotRun, case
from bedplate.hal.suite.subject import Subject, expect

BAD = abi.BP_INVALID_ARGUMENT


def create(s: Subject, **fields: int) -> tuple[int, int]:
    """Status and handle of a raw mem.create."""
    out = ffi.new("uint64_t *")
    return int(s.api.mem.create(s.handle, new("bp_memory_info", **fields), out)), int(out[0])


def describe(s: Subject, handle: int) -> Any:
    """The info of a live memory."""
    info = new("bp_memory_info")
    s.works(s.api.mem.describe(s.handle, handle, info), "mem.describe")
    return info


@case("mem", "positive")
def sizes_are_kept(s: Subject) -> None:
    """From one byte to beyond a huge page, describe tells what was asked."""
    for size in (1, 63, 4096, (1 << 21) + 1):
        status, handle = create(s, bytes=size)
        s.works(status, f"mem.create of {size} bytes")
        told = describe(s, handle).bytes
        expect(told == size, f"memory of {size} bytes says it has {told}")


@case("mem", "positive", catches=["misaligned"])
def alignment_is_kept(s: Subject) -> None:
    """The address is a multiple of what was asked; needs an address to look at."""
    s.need("device_address")
    for alignment in (64, 256, 4096):
        for _ in range(4):
            status, handle = create(s, bytes=100, alignment=alignment)
            s.works(status, f"mem.create aligned to {alignment}")
            rest = describe(s, handle).address % alignment
            expect(rest == 0, f"an address is {rest} past a multiple of {alignment}")


@case("mem", "positive")
def memories_are_apart(s: Subject) -> None:
    """Handles differ, and a write to one is not seen in another."""
    one, other = s.memory(64, 1), s.memory(64, 2)
    batch = Batch()
    batch.fill(one, 0x07070707)
    s.completes(batch, "a fill")
    expect(one.handle != other.handle, "two memories have one handle")
    expect(s.content(other) == b"\x02" * 64, "a fill of one memory changed another")


@case("mem", "positive", catches=["stale_accepted"])
def a_released_handle_is_stale(s: Subject) -> None:
    """describe, release and a command refuse it."""
    buffer = s.memory(64)
    handle = buffer.handle
    batch = Batch()
    batch.fill(buffer, 0)
    s.works(s.api.mem.release(s.handle, handle), "mem.release")
    buffer.handle = 0
    info = new("bp_memory_info")
    s.refuses(s.api.mem.describe(s.handle, handle, info), BAD, "mem.describe of released memory")
    s.refused_batch(batch, BAD, "a fill of released memory")
    s.refuses(s.api.mem.release(s.handle, handle), BAD, "releasing twice")


@case("mem", "positive", tier="full")
def handles_are_not_used_again(s: Subject) -> None:
    """A new memory in an old slot has another handle."""
    seen = set()
    for _ in range(200):
        status, handle = create(s, bytes=64)
        s.works(status, "mem.create")
        expect(handle not in seen and handle, f"the handle 0x{handle:x} came twice")
        seen.add(handle)
        s.works(s.api.mem.release(s.handle, handle), "mem.release")


@case("mem", "negative")
def nothing_is_not_memory(s: Subject) -> None:
    """0 bytes is refused."""
    s.refuses(create(s, bytes=0)[0], BAD, "memory of 0 bytes")


@case("mem", "negative")
def odd_alignments_are_refused(s: Subject) -> None:
    """Not a power of two."""
    for alignment in (3, 48, 100):
        status = create(s, bytes=64, alignment=alignment)[0]
        s.refuses(status, BAD, f"an alignment of {alignment}")


@case("mem", "negative")
def too_much_is_refused_and_life_goes_on(s: Subject) -> None:
    """More than the device has, and the largest number; a small one works after."""
    for size in (s.info.memory_bytes + 1, (1 << 64) - 1):
        status = create(s, bytes=size)[0]
        s.refuses(status, (abi.BP_OUT_OF_MEMORY, BAD), f"memory of {size} bytes")
    s.works(create(s, bytes=64)[0], "mem.create after a refusal")


@case("mem", "negative")
def wild_handles_are_refused(s: Subject) -> None:
    """0, all ones, and a live one of another generation."""
    _, handle = create(s, bytes=64)
    for wild in (0, (1 << 64) - 1, handle + (1 << 32), handle ^ (1 << 63)):
        s.refuses(s.api.mem.release(s.handle, wild), BAD, f"releasing 0x{wild:x}")


@case("mem", "negative")
def no_place_for_memory(s: Subject) -> None:
    """A null info or result is refused."""
    out = ffi.new("uint64_t *")
    s.refuses(s.api.mem.create(s.handle, ffi.NULL, out), BAD, "mem.create without info")
    info = new("bp_memory_info", bytes=64)
    s.refuses(s.api.mem.create(s.handle, info, ffi.NULL), BAD, "mem.create without a result")
    _, handle = create(s, bytes=64)
    status = s.api.mem.describe(s.handle, handle, ffi.NULL)
    s.refuses(status, BAD, "mem.describe without a result")


@case("mem", "positive", catches=["short_struct"])
def describe_writes_what_the_caller_has(s: Subject) -> None:
    """A caller that knows bytes and alignment only is not written past them."""
    _, handle = create(s, bytes=64)
    offset = abi.LAYOUT["bp_memory_info"][1]["address"]
    info = new("bp_memory_info", address=0x5A5A)
    info.head.struct_size = offset
    s.works(s.api.mem.describe(s.handle, handle, info), "mem.describe")
    expect(info.bytes == 64, "the part that the caller has is missing")
    expect(info.address == 0x5A5A, "bytes behind the caller's struct were written")


@case("mem", "positive")
def describe_clears_an_unknown_tail(s: Subject) -> None:
    """What a newer caller has beyond our struct becomes zero."""
    _, handle = create(s, bytes=64)
    size = abi.LAYOUT["bp_memory_info"][0]
    storage = ffi.new("char[]", b"\x7f" * (size + 24))
    info = ffi.cast("bp_memory_info *", storage)
    info.head.struct_version, info.head.struct_size = 1, size + 24
    s.works(s.api.mem.describe(s.handle, handle, info), "mem.describe")
    expect(bytes(ffi.buffer(storage, size + 24))[size:] == bytes(24), "the tail is not zero")


@case("host_visible", "positive")
def the_host_sees_what_the_device_wrote(s: Subject) -> None:
    """Through the pointer of describe, after the work is done."""
    buffer = s.memory(256)
    batch = Batch()
    batch.fill(buffer, 0xDDCCBBAA)
    s.completes(batch, "a fill")
    expect(s.content(buffer) == b"\xaa\xbb\xcc\xdd" * 64, "the host does not see a fill")


@case("host_visible", "positive")
def the_device_sees_what_the_host_wrote(s: Subject) -> None:
    """Bytes put there by the host are what a copy moves."""
    source, target = s.memory(256), s.memory(256)
    s.put(source, np.arange(256, dtype="u1"))
    batch = Batch()
    batch.copy(target, source)
    s.completes(batch, "a copy")
    expect(s.content(target) == bytes(range(256)), "the device does not see the host's bytes")


@case("pin_host", "positive")
def pinned_memory_carries_any_part(s: Subject) -> None:
    """Lengths and offsets that are no multiple of anything, both ways; bytes around stay."""
    storage, out = ffi.new("char[]", bytes(i % 251 for i in range(512))), ffi.new("uint64_t *")
    s.works(s.api.mem.pin(s.handle, storage, 512, out), "mem.pin")
    pinned = Buffer(s.device, int(out[0]), 512, 0)
    for length, at, to in ((1, 0, 0), (7, 3, 5), (64, 1, 2), (200, 13, 7)):
        target, seen = s.memory(256, 0xEE), s.memory(length)
        batch = Batch()
        batch.copy(Range(target, to, length), Range(pinned, at, length))
        batch.copy(Range(pinned, 256 + to, length), Range(target, to, length))
        batch.copy(seen, Range(pinned, 256 + to, length))
        s.completes(batch, "copies from and to pinned memory")
        part = bytes(i % 251 for i in range(at, at + length))
        wanted = b"\xee" * to + part + b"\xee" * (256 - to - length)
        back = bytes(ffi.buffer(storage, 512))[256 + to : 256 + to + length]
        expect(s.content(target) == wanted, f"{length} bytes from pinned memory are wrong")
        expect(back == part, f"{length} bytes to pinned memory are wrong")
        expect(s.content(seen) == part, "a copy did not see what the one before it brought")
    pinned.release()


@case("host_visible", "negative")
def no_pointer_to_released_memory(s: Subject) -> None:
    """describe gives none, and leaves the caller's struct alone."""
    _, handle = create(s, bytes=64)
    s.works(s.api.mem.release(s.handle, handle), "mem.release")
    info = new("bp_memory_info")
    s.refuses(s.api.mem.describe(s.handle, handle, info), BAD, "mem.describe of released memory")
    expect(info.host == ffi.NULL, "a pointer to released memory was given")


@case("host_visible", "absent")
def no_host_pointer(s: Subject) -> None:
    """Without the claim the pointer is null."""
    _, handle = create(s, bytes=64)
    expect(describe(s, handle).host == ffi.NULL, "it gives a host pointer that it does not claim")


@case("device_address", "positive", catches=["wrong_address"], needs=["module_native"])
def kernels_get_the_described_address(s: Subject) -> None:
    """What describe tells is what a launch packs, offset included."""
    out = s.memory(256)
    batch = Batch()
    batch.launch(s.kernel("echo"), (1,), [out])
    s.completes(batch, "a launch")
    packed = int.from_bytes(s.content(out)[8:16], "little")
    told = int(describe(s, out.handle).address)
    expect(packed == told, f"describe says 0x{told:x}, a kernel was given 0x{packed:x}")


@case("device_address", "positive")
def kernels_reach_the_described_address(s: Subject) -> None:
    """A kernel that is given the number writes into the memory, at any multiple of 4 bytes."""
    if s.code not in ("native", "ptx"):
        raise NotRun("it needs a kernel that takes an address as a number")
    out = s.memory(64)
    told, batch = int(describe(s, out.handle).address), Batch()
    for at in (0, 4, 60):
        batch.launch(s.kernel("store"), (1,), [U64(told + at), U32(at + 1)])
    s.completes(batch, "launches with addresses")
    wanted = [at + 1 if at in (0, 4, 60) else 0 for at in range(0, 64, 4)]
    expect(s.words(out, "u4") == wanted, "a kernel did not reach the described address")


@case("device_address", "negative")
def no_address_of_a_wild_handle(s: Subject) -> None:
    """describe of 0 is refused and writes nothing."""
    info = new("bp_memory_info")
    s.refuses(s.api.mem.describe(s.handle, 0, info), BAD, "mem.describe of 0")
    expect(info.address == 0, "an address of nothing was given")


@case("device_address", "absent")
def no_device_address(s: Subject) -> None:
    """Without the claim the address is 0."""
    _, handle = create(s, bytes=64)
    expect(describe(s, handle).address == 0, "it gives an address that it does not claim")


@case("pin_host", "positive", catches=["pin_copy"])
def pinned_memory_is_the_callers(s: Subject) -> None:
    """A fill of the handle is seen in the caller's bytes, and the reverse."""
    storage, out = ffi.new("char[]", 64), ffi.new("uint64_t *")
    s.works(s.api.mem.pin(s.handle, storage, 64, out), "mem.pin")
    pinned, copy = Buffer(s.device, int(out[0]), 64, 0), s.memory(64)
    batch = Batch()
    batch.copy(copy, pinned)
    batch.fill(pinned, 0x05050505)
    storage[3] = b"\x09"
    s.completes(batch, "a copy and a fill of pinned memory")
    expect(s.content(copy)[3] == 9, "the device does not see the caller's bytes")
    expect(bytes(ffi.buffer(storage, 64)) == b"\x05" * 64, "the caller does not see a fill")
    pinned.release()


@case("pin_host", "negative")
def nothing_cannot_be_pinned(s: Subject) -> None:
    """Null, no bytes, a size that wraps."""
    storage, out = ffi.new("char[]", 64), ffi.new("uint64_t *")
    s.refuses(s.api.mem.pin(s.handle, ffi.NULL, 64, out), BAD, "pinning null")
    s.refuses(s.api.mem.pin(s.handle, storage, 0, out), BAD, "pinning 0 bytes")
    s.refuses(s.api.mem.pin(s.handle, storage, (1 << 64) - 1, out), BAD, "pinning past the end")


def _info(s: Subject) -> tuple[Any, Any]:
    return new("bp_memory_info", bytes=64), None


def _create(s: Subject, info: Any) -> int:
    return int(s.api.mem.create(s.handle, info, ffi.new("uint64_t *")))


structs.add(structs.StructRule("mem", "bp_memory_info", _info, _create))
