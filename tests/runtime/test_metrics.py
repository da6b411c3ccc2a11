"""The `alloc_*` metrics are the pools' figures at the moment of the read."""

from __future__ import annotations

import pytest

from bedplate.core.metrics import Registry
from bedplate.runtime.api import NumbersAllocator, OutOfMemory, SteadyStateViolation, publish

MIB = 1 << 20


def read(registry: Registry) -> dict[tuple[str, ...], float]:
    """Every series by its name without prefix and the values of its labels."""
    return {
        (sample.name.removeprefix("bedplate_"), *sample.labels.values()): sample.value
        for family in registry.collect()
        for sample in family.samples
    }


def test_gauges_are_the_figures_and_zeros_after_the_end() -> None:
    """A pool with one block live, one waiting, and a hole between."""
    registry = Registry()
    with NumbersAllocator(1 << 30) as memory:
        publish(memory, registry, "numbers:0")
        memory.hold()
        main, side = memory.stream(), memory.stream()
        pool = memory.pool("kv")
        blocks = [pool.allocate(4 * MIB, main) for _ in range(4)]
        blocks[0].free()
        side.advance(3)
        blocks[2].used_on(side)
        blocks[2].free()
        found, stats = read(registry), pool.stats()
        place = ("numbers:0", "kv")
        assert found["alloc_bytes", *place, "reserved"] == stats.reserved_bytes
        assert found["alloc_bytes", *place, "allocated"] == 8 * MIB
        assert found["alloc_bytes", *place, "active"] == 12 * MIB
        assert found["alloc_bytes", *place, "pending_free"] == 4 * MIB
        assert found["alloc_bytes", *place, "inactive_split"] == stats.inactive_split_bytes
        assert found["alloc_largest_free_block_bytes", *place] == 4 * MIB
        assert found["alloc_segments", *place] == stats.reserved_bytes // (2 * MIB)
        blocks[1].free()
        blocks[3].free()
        keep = pool.allocate(MIB, main)
        assert read(registry)["alloc_fragmentation_ratio", *place] == pool.stats().fragmentation
        assert keep.bytes == MIB
    assert set(read(registry).items()) >= {(("alloc_bytes", *place, "reserved"), 0.0)}
    assert read(registry)["alloc_segments", *place] == 0


def test_driver_calls_are_counted_by_call_and_phase() -> None:
    """As often as they reached the device; two allocators add up, two reads do not."""
    registry = Registry()
    with NumbersAllocator(1 << 30) as memory, NumbersAllocator(1 << 30) as other:
        publish(memory, registry, "numbers:0")
        publish(other, registry, "numbers:1")
        for allocator, size in ((memory, 6 * MIB), (other, 2 * MIB)):
            allocator.pool("weights").allocate(size, allocator.stream())
        made = {name: memory.calls()[name] + other.calls()[name] for name in ("create", "map")}
        for _ in range(2):
            found = read(registry)
            assert found["alloc_driver_calls_total", "create", "warmup"] == made["create"] == 4
            assert found["alloc_driver_calls_total", "map", "warmup"] == made["map"] == 4
            assert found["alloc_driver_calls_total", "create", "sealed"] == 0
        memory.seal()
        with pytest.raises(SteadyStateViolation):
            memory.pool("weights").allocate(64 * MIB, memory.stream())
        assert read(registry)["alloc_driver_calls_total", "create", "sealed"] > 0
        assert memory.calls()["create"] + other.calls()["create"] == 4


def test_failures_retries_and_latencies_are_counted() -> None:
    """A request that does not fit, one that fits when quick bins are emptied, and all of them."""
    registry = Registry()
    with NumbersAllocator(8 * MIB) as memory:
        publish(memory, registry, "numbers:0")
        stream = memory.stream()
        pool = memory.pool("scratch")
        with pytest.raises(OutOfMemory):
            pool.allocate(64 * MIB, stream)
        small = [pool.allocate(MIB, stream) for _ in range(8)]
        for block in small:
            block.free()
        before = read(registry)
        assert before["alloc_ooms_total",] == 1
        pool.allocate(8 * MIB, stream)
        found = read(registry)
        assert found["alloc_retries_total",] > before["alloc_retries_total",]
        assert found["alloc_latency_seconds_count",] == 10
        assert 0 < found["alloc_latency_seconds_sum",] < 60
