"""The peer of the benchmark, OffsetAllocator's method: what is compared must work."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bedplate.runtime.native import ffi

LIBRARY = Path(__file__).parents[2] / "build/Release/native/runtime/libbedplate_runtime_offset.so"
UNIT, CAPACITY = 512, 64 << 20


@pytest.mark.parametrize("seed", range(4))
def test_the_peer_keeps_blocks_apart_and_joins_them_again(seed: int) -> None:
    """Random requests until it is full, random frees: no overlap; empty, it is one block."""
    peer = ffi.dlopen(str(LIBRARY))
    draw = random.Random(seed)
    out, block = ffi.new("bp_runtime **"), ffi.new("bp_runtime_block *")
    assert peer.bp_runtime_open_fake(CAPACITY, 0, b"", 0, out) == 0
    live: dict[int, tuple[int, int]] = {}
    refused = 0
    for _ in range(4000):
        if live and draw.random() < 0.45:
            handle = draw.choice(list(live))
            del live[handle]
            assert peer.bp_runtime_free(out[0], handle) == 0
            continue
        size = int(2 ** draw.uniform(0, 21)) * 3
        if peer.bp_runtime_allocate(out[0], 2, size, 0, block):
            refused += 1
            continue
        at, end = block.address, block.address + block.bytes
        assert block.bytes == -(-size // UNIT) * UNIT
        assert end <= CAPACITY
        assert all(end <= other or at >= stop for other, stop in live.values())
        live[int(block.handle)] = (at, end)
    assert refused > 0
    for handle in live:
        assert peer.bp_runtime_free(out[0], handle) == 0
    assert peer.bp_runtime_allocate(out[0], 2, CAPACITY, 0, block) == 0
    assert block.address == 0
    assert peer.bp_runtime_allocate(out[0], 2, 1, 0, block) < 0
    assert peer.bp_runtime_close(out[0]) == 0
