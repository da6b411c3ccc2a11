"""mem: limits, many at once, and what stays as it is."""

from __future__ import annotations

import itertools

import numpy as np

from bedplate.hal import abi
from bedplate.hal.batch import Batch
from bedplate.hal.buffer import Buffer, Range
from bedplate.hal.native import ffi, new
from bedplate.hal.suite.cases.mem import create, describe
from bedplate.hal.suite.registry import case
from bedplate.hal.suite.subject import Subject, expect

BAD = abi.BP_INVALID_ARGUMENT
TOO_MUCH = (abi.BP_OUT_OF_MEMORY, BAD)


@case("mem", "positive", tier="full")
def a_thousand_memories_live_at_once(s: Subject) -> None:
    """Each with its own handle and size; all can be given back in another order."""
    handles = []
    for size in range(1, 1001):
        status, handle = create(s, bytes=size)
        s.works(status, f"mem.create number {size}")
        handles.append(handle)
    expect(len(set(handles)) == 1000, "two of a thousand memories have one handle")
    expect(describe(s, handles[700]).bytes == 701, "a memory forgot its size among many")
    for handle in handles[::2] + handles[1::2]:
        s.works(s.api.mem.release(s.handle, handle), "mem.release")


@case("mem", "negative", tier="full")
def refused_memory_costs_nothing(s: Subject) -> None:
    """After many refusals 16 MiB are still there, and no handle was written."""
    out = ffi.new("uint64_t *", 77)
    info = new("bp_memory_info", bytes=s.info.memory_bytes + 1)
    for _ in range(50):
        s.refuses(s.api.mem.create(s.handle, info, out), TOO_MUCH, "more memory than there is")
    expect(out[0] in (0, 77), f"a refused memory has the handle 0x{out[0]:x}")
    s.works(create(s, bytes=16 << 20)[0], "mem.create after refusals")


@case("mem", "positive", tier="full")
def large_memory_is_whole(s: Subject) -> None:
    """64 MiB and a little: its first, middle and last words are its own."""
    size = (64 << 20) + 12
    status, handle = create(s, bytes=size)
    s.works(status, f"mem.create of {size} bytes")
    large, small = Buffer(s.device, handle, size, 0), s.memory(12)
    batch = Batch()
    for i, at in enumerate((0, size // 8 * 4, size - 4)):
        batch.fill(Range(large, at, 4), 0x1000 + i)
        batch.copy(Range(small, 4 * i, 4), Range(large, at, 4))
    s.completes(batch, "fills of a large memory")
    told = np.frombuffer(s.content(small), "u4").tolist()
    expect(told == [0x1000, 0x1001, 0x1002], f"words of a large memory are {told}")
    large.release()


@case("mem", "negative")
def alignments_beyond_all_reason_are_refused(s: Subject) -> None:
    """The largest power of two, and all ones; an ordinary one works after."""
    for alignment in (1 << 63, (1 << 64) - 1, 1 << 50):
        status = create(s, bytes=64, alignment=alignment)[0]
        s.refuses(status, TOO_MUCH, f"an alignment of {alignment}")
    s.works(create(s, bytes=64, alignment=64)[0], "mem.create after refusals")


@case("mem", "positive")
def small_alignments_are_allowed(s: Subject) -> None:
    """1 and 2 are powers of two, 0 is the device's own."""
    for alignment in (0, 1, 2, 4):
        status, handle = create(s, bytes=3, alignment=alignment)
        s.works(status, f"an alignment of {alignment}")
        told = int(describe(s, handle).alignment)
        expect(told >= max(alignment, 1), f"an alignment of {alignment} became {told}")
        expect(told & (told - 1) == 0, f"describe tells the alignment {told}")


@case("mem", "positive")
def describe_repeats_itself(s: Subject) -> None:
    """Before and after work on it, every field is the same."""
    buffer = s.memory(256)
    names = ("bytes", "alignment", "address", "host")
    before = [getattr(describe(s, buffer.handle), name) for name in names]
    batch = Batch()
    batch.fill(buffer, 1)
    s.completes(batch, "a fill")
    after = [getattr(describe(s, buffer.handle), name) for name in names]
    expect(before == after, f"describe told {before}, then {after}")


@case("mem", "negative")
def describe_wants_a_head(s: Subject) -> None:
    """A size below the head and another version are refused, and nothing is written."""
    _, handle = create(s, bytes=64)
    for version, size in ((1, 0), (1, 4), (0, 64), (2, 64)):
        info = new("bp_memory_info", bytes=0x5A5A)
        info.head.struct_version, info.head.struct_size = version, size
        status = s.api.mem.describe(s.handle, handle, info)
        s.refuses(status, BAD, f"mem.describe of version {version} and size {size}")
        expect(info.bytes == 0x5A5A, "a refused struct was written")


@case("mem", "positive", tier="full")
def neighbours_come_and_go(s: Subject) -> None:
    """What lies in a memory is not changed by making and releasing others."""
    kept = s.memory(1000, 0x5C)
    for size in (1, 1000, 70_000, 3 << 20):
        handles = [create(s, bytes=size)[1] for _ in range(4)]
        for handle in handles:
            s.works(s.api.mem.release(s.handle, handle), "mem.release")
    expect(s.content(kept) == b"\x5c" * 1000, "another memory changed ours")


def _apart(spans: list[tuple[int, int]]) -> bool:
    ordered = sorted(spans)
    return all(a + size <= b for (a, size), (b, _) in itertools.pairwise(ordered))


@case("device_address", "positive")
def addresses_are_apart(s: Subject) -> None:
    """No two live memories share a byte of address space, and none is at 0."""
    spans = []
    for size in (1, 64, 4096, 100_000, 2 << 20) * 8:
        _, handle = create(s, bytes=size)
        spans.append((int(describe(s, handle).address), size))
    expect(all(address for address, _ in spans), "a memory is at address 0")
    expect(_apart(spans), "two live memories overlap")


@case("device_address", "positive", needs=["module_native"])
def an_offset_moves_the_address(s: Subject) -> None:
    """A range that begins inside is packed as the address of its first byte."""
    out = s.memory(512)
    for offset in (8, 64, 200):
        batch = Batch()
        batch.launch(s.kernel("echo"), (1,), [Range(out, 0, 256), Range(out, offset, 8)])
        s.completes(batch, "a launch")
        packed = int.from_bytes(s.content(out)[16:24], "little")
        wanted = int(describe(s, out.handle).address) + offset
        expect(packed == wanted, f"offset {offset} is packed as 0x{packed:x}, not 0x{wanted:x}")


@case("device_address", "negative")
def no_address_of_released_memory(s: Subject) -> None:
    """describe refuses and leaves the caller's struct alone."""
    _, handle = create(s, bytes=64)
    s.works(s.api.mem.release(s.handle, handle), "mem.release")
    info = new("bp_memory_info")
    s.refuses(s.api.mem.describe(s.handle, handle, info), BAD, "mem.describe of released memory")
    expect(info.address == 0, "an address of released memory was given")


@case("host_visible", "positive")
def host_pointers_are_apart(s: Subject) -> None:
    """No two live memories share a byte, and each pointer is aligned as asked."""
    spans = []
    for alignment in (64, 256, 4096):
        for size in (1, 100, 5000):
            _, handle = create(s, bytes=size, alignment=alignment)
            host = int(ffi.cast("uintptr_t", describe(s, handle).host))
            expect(host and host % alignment == 0, f"0x{host:x} is not aligned to {alignment}")
            spans.append((host, size))
    expect(_apart(spans), "two live memories overlap in the host")


@case("host_visible", "positive")
def the_host_may_write_between_batches(s: Subject) -> None:
    """Each batch sees what was written after the one before it was done."""
    source, target, queue, done = s.memory(64), s.memory(64), s.queue(), s.timeline()
    host = source.view("u1")
    for turn in range(1, 20):
        host[:] = turn
        batch = Batch()
        batch.copy(target, source)
        s.works(s.submit(queue, batch, signal=[(done, turn)]), "queue.submit")
        s.works(s.wait(done, turn), "waiting for a copy")
        expect(s.content(target) == bytes([turn]) * 64, f"turn {turn} copied other bytes")


@case("host_visible", "positive")
def a_fence_makes_work_visible(s: Subject) -> None:
    """What a batch wrote is seen behind its signal, while later batches are still held."""
    buffer, queue, gate, done = s.memory(64), s.queue(), s.timeline(), s.timeline()
    host = buffer.view("u1")
    first, second = Batch(), Batch()
    first.fill(buffer, 0x01010101)
    second.fill(buffer, 0x02020202)
    s.works(s.submit(queue, first, signal=[(done, 1)]), "queue.submit")
    s.works(s.submit(queue, second, wait=[(gate, 1)], signal=[(done, 2)]), "queue.submit")
    s.works(s.wait(done, 1), "waiting for the first batch")
    expect(bytes(host) == b"\x01" * 64, "the first batch is not seen behind its signal")
    s.works(s.api.timeline.signal(s.handle, gate, 1), "timeline.signal")
    s.works(s.wait(done, 2), "waiting for the second batch")
    expect(bytes(host) == b"\x02" * 64, "the second batch is not seen behind its signal")
