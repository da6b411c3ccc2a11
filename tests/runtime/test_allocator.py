"""The allocator from Python: on `cpu`, on OpenCL, and on a device of numbers that can be told."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from bedplate.hal.api import Batch, DType, Tensor, open_device
from bedplate.runtime.api import (
    Allocator,
    BadBlock,
    NumbersAllocator,
    OptionsInvalid,
    OutOfMemory,
    OverQuota,
    RuntimeFault,
    SteadyStateViolation,
)
from bedplate.runtime.native import check, library

MIB = 1 << 20


@pytest.mark.parametrize("name", ["cpu", "opencl"])
def test_blocks_of_a_device_hold_what_is_written(name: str) -> None:
    """Blocks are ranges of the device's memory: commands write one and leave the next."""
    with open_device(name) as device, Allocator(device) as memory, device.queue() as queue:
        stream = memory.stream()
        pool = memory.pool("activations")
        blocks = [pool.allocate(300_000, stream) for _ in range(3)]
        tensors = []
        for block in blocks:
            place = block.range
            tensors.append(Tensor(place.buffer, place.offset, (1000,), DType.F32))
        for index, tensor in enumerate(tensors):
            device.write(tensor, np.full(1000, index, np.float32))
        batch = Batch()
        batch.copy(tensors[0], tensors[2])
        queue.submit(batch)
        queue.synchronize()
        assert [device.download(t)[0] for t in tensors] == [2.0, 1.0, 2.0]
        for block in blocks:
            block.free()
        memory.check()
        assert memory.stats("activations").allocated_bytes == 0


def test_a_block_that_another_stream_used_waits_for_it() -> None:
    """Freed at once on its own stream; with a use elsewhere only when that has passed."""
    with NumbersAllocator(1 << 30) as memory:
        memory.hold()
        main, side = memory.stream(), memory.stream()
        pool = memory.pool("activations")
        block = pool.allocate(4 * MIB, main)
        side.advance(7)
        block.used_on(side)
        block.free()
        assert pool.stats().pending_free_bytes == 4 * MIB
        other = pool.allocate(4 * MIB, main)
        assert repr(other) == f"<Block {4 * MIB} bytes at {other.address:#x}>"
        assert other.address != block.address
        memory.reach(2, 7)
        again = pool.allocate(4 * MIB, main)
        assert again.address == block.address
        assert pool.stats().pending_free_bytes == 0


def test_a_destroyed_stream_leaves_its_fences() -> None:
    """A block used on a stream that is closed before the free still waits for its work."""
    with NumbersAllocator(1 << 30) as memory:
        memory.hold()
        main, side = memory.stream(), memory.stream()
        pool = memory.pool("activations")
        block = pool.allocate(4 * MIB, main)
        side.advance(3)
        block.used_on(side)
        side.close()
        block.free()
        assert pool.allocate(4 * MIB, main).address != block.address
        memory.reach(2, 3)
        assert pool.allocate(4 * MIB, main).address == block.address


def test_another_stream_gets_freed_memory_only_after_its_work() -> None:
    """The same stream may have it at once, another when the timeline has reached the value."""
    with NumbersAllocator(1 << 30) as memory:
        memory.hold()
        main, side = memory.stream(), memory.stream()
        pool = memory.pool("activations")
        block = pool.allocate(4 * MIB, main)
        main.advance(5)
        block.free()
        assert pool.allocate(4 * MIB, side).address != block.address
        again = pool.allocate(4 * MIB, main)
        assert again.address == block.address
        again.free()
        memory.reach(1, 5)
        assert pool.allocate(4 * MIB, side).address == block.address


def test_scattered_free_memory_serves_one_large_request() -> None:
    """Half of a full device free in pieces between live blocks: remap makes one range of it."""
    with NumbersAllocator(512 * MIB) as memory:
        stream = memory.stream()
        pool = memory.pool("activations")
        blocks = [pool.allocate(16 * MIB, stream) for _ in range(32)]
        for block in blocks[::2]:
            block.free()
        assert pool.stats().largest_free_block_bytes == 16 * MIB
        large = pool.allocate(256 * MIB, stream)
        assert large.bytes == 256 * MIB
        assert pool.stats().reserved_bytes == 512 * MIB
        assert pool.stats().remapped_bytes > 0
        memory.check()


def test_out_of_memory_says_what_there_was() -> None:
    """Requested, reserved, allocated, largest block, pending, and what to do."""
    with NumbersAllocator(64 * MIB, piece=0) as memory:
        stream = memory.stream()
        pool = memory.pool("activations")
        keep = pool.allocate(30 * MIB, stream)
        with pytest.raises(OutOfMemory) as caught:
            pool.allocate(60 * MIB, stream)
        text = str(caught.value)
        for part in ("62914560 bytes", "`activations`", "31457280 reserved", "31457280 allocated",
                     "largest free block 0", "0 waiting"):  # fmt: skip
            assert part in text
        assert caught.value.remedy
        keep.free()
        assert pool.allocate(60 * MIB, stream).bytes >= 60 * MIB


def test_a_quota_stops_its_pool_alone() -> None:
    """The pool at its quota fails, its neighbour goes on."""
    with NumbersAllocator(1 << 30) as memory:
        stream = memory.stream()
        memory.pool("kv").limit(32 * MIB)
        memory.pool("kv").allocate(30 * MIB, stream)
        with pytest.raises(OverQuota, match="quota 33554432"):
            memory.pool("kv").allocate(8 * MIB, stream)
        assert memory.pool("weights").allocate(200 * MIB, stream).bytes == 200 * MIB
        assert memory.pool("kv").stats().out_of_memory == 1


def test_sealed_memory_never_calls_the_driver() -> None:
    """What is there is served; what would need the driver is refused by name, or counted."""
    with NumbersAllocator(1 << 30) as memory:
        stream = memory.stream()
        pool = memory.pool("activations")
        pool.allocate(64 * MIB, stream).free()
        memory.seal()
        before = memory.calls()
        for size in (100, 3 * MIB, 60 * MIB):
            pool.allocate(size, stream) if size > MIB else None
        with pytest.raises(SteadyStateViolation, match=r"activations.*create"):
            pool.allocate(200 * MIB, stream)
        assert memory.calls() == before
        memory.seal("count")
        pool.allocate(200 * MIB, stream)
        assert pool.stats().sealed_calls > 1
        assert memory.calls() != before


@pytest.mark.parametrize("calls", range(12))
def test_a_driver_call_that_fails_changes_nothing(calls: int) -> None:
    """Whichever call of a growth fails, figures and memory are as before, and the next works."""
    with NumbersAllocator(1 << 30) as memory:
        stream = memory.stream()
        pool = memory.pool("activations")
        blocks = [pool.allocate(6 * MIB, stream) for _ in range(6)]
        for block in blocks[::2]:
            block.free()
        before = pool.stats()
        memory.fail_in(calls)
        try:
            pool.allocate(20 * MIB, stream)
        except RuntimeFault as error:
            assert "planted" in str(error)  # noqa: PT017 - it may also not be reached
            after = pool.stats()
            assert after.reserved_bytes == before.reserved_bytes
            assert after.allocated_bytes == before.allocated_bytes
        memory.check()
        assert pool.allocate(20 * MIB, stream).bytes == 20 * MIB
        memory.check()


def test_the_sanitizer_names_a_write_after_free() -> None:
    """A byte that changed while the block lay in quarantine is told with block and stream."""
    with NumbersAllocator(1 << 30, piece=0, options=f"quarantine_bytes:{8 * MIB}") as memory:
        stream = memory.stream()
        pool = memory.pool("activations")
        block = pool.allocate(4 * MIB, stream)
        block.free()
        pool.allocate(MIB * 2, stream).free()
        memory.scribble(block.address, block.offset + 11)
        assert memory.findings() == []
        pool.allocate(6 * MIB, stream).free()
        found = memory.findings()
        assert len(found) == 1
        assert "byte 11 of the block" in found[0]
        assert memory.findings() == []


def test_the_sanitizer_sees_a_real_write_after_free() -> None:
    """On `cpu` the poison is in the memory itself."""
    with (
        open_device("cpu") as device,
        Allocator(device, f"quarantine_bytes:{2 * MIB}") as memory,
    ):
        stream = memory.stream()
        pool = memory.pool("scratch")
        block = pool.allocate(MIB, stream)
        view = block.range.buffer.view("u1", (block.bytes,), block.offset)
        block.free()
        pool.allocate(4096, stream).free()
        view[1234] = 1
        for _ in range(4):
            pool.allocate(MIB, stream).free()
        assert any("byte 1234" in line for line in memory.findings())


def test_wrong_use_is_refused_and_named() -> None:
    """Double frees, foreign handles, absurd sizes, unknown pools, seals and options."""
    with NumbersAllocator(1 << 30) as memory, NumbersAllocator(1 << 30) as other:
        stream = memory.stream()
        other.stream()
        pool = memory.pool("activations")
        block = pool.allocate(100, stream)
        block.free()
        with pytest.raises(BadBlock, match="freed before"):
            block.free()
        large = pool.allocate(3 * MIB, stream)
        large._memory = other
        with pytest.raises(BadBlock):
            large.free()
        assert pool.allocate(0, stream).handle == 0
        for size in (-1, 1 << 64, (1 << 64) - 1, 1 << 63):
            with pytest.raises((OptionsInvalid, OutOfMemory)):
                pool.allocate(size, stream)
        with pytest.raises(OptionsInvalid, match="no pool 'heap'"):
            memory.pool("heap")
        with pytest.raises(OptionsInvalid, match="no seal"):
            memory.seal("shut")  # type: ignore[arg-type]
        stream.close()
        with pytest.raises(OptionsInvalid, match="not open"):
            pool.allocate(100, stream)
    for options, part in (
        ("unit:7", "unit of 7"),
        ("speed:9", "no option is called `speed`"),
        ("wait", "no value"),
        ("piece:3", "no multiple"),
    ):
        with pytest.raises(OptionsInvalid, match=part):
            NumbersAllocator(1 << 30, options=options)


def test_options_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """`BEDPLATE_RUNTIME_ALLOC_CONF` is read, and the argument comes after it."""
    monkeypatch.setenv("BEDPLATE_RUNTIME_ALLOC_CONF", "unit:9")
    with open_device("cpu") as device:
        with pytest.raises(OptionsInvalid, match="unit of 9"):
            Allocator(device)
        Allocator(device, "unit:256").close()


def test_quick_bins_count_as_free() -> None:
    """What lies in a quick bin is not allocated; peaks are those of live bytes."""
    with NumbersAllocator(1 << 30) as memory:
        stream = memory.stream()
        pool = memory.pool("activations")
        for _ in range(10):
            blocks = [pool.allocate(1000, stream) for _ in range(4)]
            for block in blocks:
                block.free()
        stats = pool.stats()
        assert stats.allocated_bytes == 0
        assert stats.small.allocation.allocated == stats.small.allocation.freed == 40
        assert stats.allocated_peak_bytes == 4 * 1024
        assert stats.small.requested_bytes.current == 0
        held = [pool.allocate(1000, stream) for _ in range(5)]
        assert pool.stats().allocated_peak_bytes == 5 * 1024
        assert pool.stats().small.requested_bytes.current == 5000
        assert memory.trim() == 0
        for block in held:
            block.free()
        assert memory.trim() == 2 * MIB
        assert pool.stats().reserved_bytes == 0


def test_fragmentation_is_what_the_largest_free_block_is_not() -> None:
    """Of 16 MiB free 12 in one block: a quarter; nothing free is no fragmentation."""
    with NumbersAllocator(1 << 30) as memory:
        stream, pool = memory.stream(), memory.pool("kv")
        assert pool.stats().fragmentation == 0
        blocks = [pool.allocate(size * MIB, stream) for size in (4, 2, 12, 2)]
        assert pool.stats().fragmentation == 0
        blocks[0].free()
        blocks[2].free()
        assert pool.stats().fragmentation == 0.25


def test_memory_idle_in_other_streams_quick_bins_is_found() -> None:
    """80 of 100 MiB lie in the quick bins of ten streams of this thread."""
    with NumbersAllocator(100 * MIB) as memory:
        streams = [memory.stream() for _ in range(10)]
        kv = memory.pool("kv")
        for stream in streams:
            for block in [kv.allocate(MIB, stream) for _ in range(8)]:
                block.free()
        assert kv.allocate(80 * MIB, streams[0]).bytes == 80 * MIB
        stats = kv.stats()
        assert stats.out_of_memory == 0 < stats.retries


def test_memory_idle_in_another_pool_is_found_unless_sealed() -> None:
    """What one pool holds and does not use serves another when the device is full."""
    for options in ("", "mapping:off"):
        with NumbersAllocator(1 << 30, options=options) as memory:
            stream = memory.stream()
            memory.pool("scratch").allocate(700 * MIB, stream).free()
            assert memory.pool("activations").allocate(700 * MIB, stream).bytes == 700 * MIB
            assert memory.stats("scratch").reserved_bytes < 512 * MIB
    with NumbersAllocator(1 << 30) as memory:
        stream = memory.stream()
        memory.pool("scratch").allocate(700 * MIB, stream).free()
        memory.seal("count")
        with pytest.raises(OutOfMemory, match="activations"):
            memory.pool("activations").allocate(700 * MIB, stream)
        assert memory.stats("scratch").reserved_bytes >= 700 * MIB


def test_what_lies_in_another_threads_quick_bins_is_told() -> None:
    """It is neither allocated nor free, and the sentence says whose it is."""
    with NumbersAllocator(16 * MIB) as memory:
        kv = memory.pool("kv")

        def leave() -> None:
            stream = memory.stream()
            for block in [kv.allocate(MIB, stream) for _ in range(6)]:
                block.free()

        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
        with pytest.raises(OutOfMemory) as caught:
            kv.allocate(14 * MIB, memory.stream())
        assert "0 allocated" in caught.value.message
        assert f"{6 * MIB} in quick bins of other threads" in caught.value.message
        assert kv.stats().out_of_memory == 1


def test_a_handle_or_stream_of_another_allocator_is_refused() -> None:
    """Both allocators are as they were."""
    with NumbersAllocator(64 * MIB) as one, NumbersAllocator(64 * MIB) as other:
        here, there = one.stream(), other.stream()
        mine = one.pool("kv").allocate(4096, here)
        theirs = other.pool("kv").allocate(4096, there)
        assert mine.handle != theirs.handle
        status = one.free_native(one.native, theirs.handle)
        with pytest.raises(BadBlock):
            check(status)
        for refused in (
            lambda: one.pool("kv").allocate(4096, there),
            lambda: mine.used_on(there),
        ):
            with pytest.raises(OptionsInvalid, match="another allocator"):
                refused()
        assert one.pool("kv").stats().small.allocation.current == 1
        mine.free()
        theirs.free()


def test_segments_and_active_bytes_are_counted_over_their_life() -> None:
    """As PyTorch counts them: what was taken and given back, and nothing in a quick bin."""
    with NumbersAllocator(256 * MIB) as memory:
        stream, kv = memory.stream(), memory.pool("kv")
        for block in [kv.allocate(100 * 1024, stream) for _ in range(60)]:
            block.free()
        small = kv.stats().small
        assert small.active_bytes.current == small.allocated_bytes.current == 0
        assert small.segment.current == small.segment.peak == small.segment.allocated == 4
        memory.trim()
        small = kv.stats().small
        assert (small.segment.current, small.segment.peak, small.segment.freed) == (0, 4, 4)


def test_numbers_that_fit_nowhere_are_refused_by_name() -> None:
    """Not as an overflow of the foreign call."""
    with NumbersAllocator(64 * MIB) as memory:
        stream = memory.stream()
        with pytest.raises(OptionsInvalid, match="a limit is -1"):
            memory.pool("kv").limit(-1)
        with pytest.raises(OptionsInvalid, match="value is -1"):
            stream.advance(-1)
        empty = memory.pool("kv").allocate(0, stream)
        empty.used_on(memory.stream())
        empty.free()


def test_no_finding_is_lost_for_want_of_room() -> None:
    """2,000 planted writes are 2,000 sentences, and then none."""
    with NumbersAllocator(64 * MIB, options=f"quarantine_bytes:{1 * MIB}") as memory:
        stream, pool = memory.stream(), memory.pool("activations")
        blocks = [pool.allocate(512, stream) for _ in range(2000)]
        addresses = [block.address for block in blocks]
        for block in blocks:
            block.free()
        pool.allocate(512, stream).free()
        for address in addresses:
            check(library().bp_runtime_fake_scribble(memory.native, address, 3))
        memory.trim()
        assert len(memory.findings()) == 2000
        assert memory.findings() == []


def test_sealed_makes_no_stream() -> None:
    """A stream is a timeline of the device, which is a call of the driver."""
    with open_device("cpu") as device, Allocator(device) as memory:
        memory.stream()
        memory.seal()
        with pytest.raises(SteadyStateViolation, match="new stream"):
            memory.stream()
        memory.seal("open")
        memory.stream()
