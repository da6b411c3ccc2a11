"""queue: copies and fills at the edges of what is allowed."""

from __future__ import annotations

import numpy as np

from bedplate.hal import abi
from bedplate.hal.batch import Batch
from bedplate.hal.buffer import Range
from bedplate.hal.suite.registry import case
from bedplate.hal.suite.subject import Subject, expect

BAD = abi.BP_INVALID_ARGUMENT


@case("queue", "positive")
def copies_inside_one_memory(s: Subject) -> None:
    """Parts that touch do not overlap: end to start, in both directions."""
    for to, source in ((32, 0), (0, 32)):
        buffer = s.memory(64)
        batch = Batch()
        batch.fill(Range(buffer, source, 32), 0x07070707)
        batch.copy(Range(buffer, to, 32), Range(buffer, source, 32))
        s.completes(batch, "a copy between touching parts")
        expect(s.content(buffer) == b"\x07" * 64, f"a copy from {source} to {to} is wrong")


@case("queue", "negative")
def an_overlap_of_one_byte_is_refused(s: Subject) -> None:
    """From either side, and of a range with itself; nothing moves."""
    buffer = s.memory(64, 0x44)
    for to, source in ((31, 0), (0, 31), (5, 5)):
        batch = Batch()
        batch.copy(Range(buffer, to, 32), Range(buffer, source, 32))
        s.refused_batch(batch, BAD, f"a copy of 32 bytes from {source} to {to}")
    expect(s.content(buffer) == b"\x44" * 64, "a refused copy moved something")


@case("queue", "positive")
def copies_cross_every_alignment(s: Subject) -> None:
    """All 64 pairs of offsets up to 8 in one batch, each with its own place."""
    source, target = s.memory(64), s.memory(64 * 32)
    batch = Batch()
    for i in range(16):
        batch.fill(Range(source, 4 * i, 4), 0x03020100 + 0x04040404 * i)
    for i in range(64):
        batch.copy(Range(target, 32 * i + i // 8, 17), Range(source, i % 8, 17))
    s.completes(batch, "64 copies")
    raw = s.content(target)
    for i in range(64):
        at = 32 * i + i // 8
        wanted = bytes(range(i % 8, i % 8 + 17))
        expect(raw[at : at + 17] == wanted, f"a copy from {i % 8} to {i // 8} is wrong")
        expect(raw[at + 17 : 32 * i + 32] == bytes(15 - i // 8), "a copy wrote behind its end")


@case("queue", "positive", tier="full")
def large_copies_are_whole(s: Subject) -> None:
    """8 MiB and 3 bytes at odd offsets, made by doubling."""
    size = (8 << 20) + 3
    source, target = s.memory(size + 8, None), s.memory(size + 8, 0xEE)
    batch, filled = Batch(), 1 << 10
    for i in range(filled // 4):
        batch.fill(Range(source, 4 * i, 4), i * 2654435761)
    while filled < size + 8:
        more = min(filled, size + 8 - filled)
        batch.copy(Range(source, filled, more), Range(source, 0, more))
        filled += more
    batch.copy(Range(target, 5, size), Range(source, 1, size))
    s.completes(batch, "a copy of 8 MiB")
    got, wanted = (np.frombuffer(s.content(one), "u1") for one in (target, source))
    expect((got[5 : 5 + size] == wanted[1 : 1 + size]).all(), "a large copy is wrong")
    expect((got[:5] == 0xEE).all() and (got[5 + size :] == 0xEE).all(), "it wrote beside")


@case("queue", "positive")
def empty_fills_are_nothing(s: Subject) -> None:
    """Length 0 in the middle and at the very end, with each width."""
    buffer = s.memory(16, 0x55)
    batch = Batch()
    for width in (1, 2, 4):
        for at in (8, 16):
            batch.fill(Range(buffer, at, 0), 0xFFFFFFFF)
            batch._commands[-1].pattern_bytes = width
    s.completes(batch, "empty fills")
    expect(s.content(buffer) == b"\x55" * 16, "an empty fill changed something")


@case("queue", "positive")
def only_low_bytes_of_a_pattern_are_used(s: Subject) -> None:
    """Narrow fills ignore what is above them."""
    buffer = s.memory(16)
    batch = Batch()
    batch.fill(Range(buffer, 0, 8), 0xDEAD0042)
    batch._commands[-1].pattern_bytes = 1
    batch.fill(Range(buffer, 8, 8), 0xDEAD1234)
    batch._commands[-1].pattern_bytes = 2
    s.completes(batch, "narrow fills")
    expect(s.content(buffer) == b"\x42" * 8 + b"\x34\x12" * 4, "high bytes of a pattern were used")


@case("queue", "positive")
def narrow_fills_start_anywhere(s: Subject) -> None:
    """A fill by 1 at an odd place and of an odd length; by 2 at an even one."""
    buffer = s.memory(32, 0xEE)
    batch = Batch()
    batch.fill(Range(buffer, 3, 7), 0x11)
    batch._commands[-1].pattern_bytes = 1
    batch.fill(Range(buffer, 14, 6), 0x2222)
    batch._commands[-1].pattern_bytes = 2
    s.completes(batch, "narrow fills")
    wanted = b"\xee" * 3 + b"\x11" * 7 + b"\xee" * 4 + b"\x22" * 6 + b"\xee" * 12
    expect(s.content(buffer) == wanted, "a narrow fill went elsewhere")


@case("queue", "positive", tier="full")
def large_fills_are_whole(s: Subject) -> None:
    """4 MiB by each width, with bytes before and behind kept."""
    size = 4 << 20
    for width in (1, 2, 4):
        buffer = s.memory(size + 8, 0xEE)
        batch = Batch()
        batch.fill(Range(buffer, 4, size), 0x44332211)
        batch._commands[-1].pattern_bytes = width
        s.completes(batch, "a fill of 4 MiB")
        raw = s.content(buffer)
        expect(raw[4:-4] == b"\x11\x22\x33\x44"[:width] * (size // width), "a large fill is wrong")
        expect(raw[:4] + raw[-4:] == b"\xee" * 8, "a large fill wrote beside")


@case("queue", "positive", catches=["swapped_pair", "torn_batch"])
def a_long_chain_keeps_its_order(s: Subject) -> None:
    """A value handed through 500 copies, each depending on the one before."""
    buffer = s.memory(4 * 501)
    batch = Batch()
    batch.fill(Range(buffer, 0, 4), 0xC0FFEE)
    for i in range(500):
        batch.copy(Range(buffer, 4 * i + 4, 4), Range(buffer, 4 * i, 4))
    s.completes(batch, "a chain of copies")
    words = np.frombuffer(s.content(buffer), "u4")
    broken = int(np.argmax(words != 0xC0FFEE))
    expect((words == 0xC0FFEE).all(), f"the chain broke at copy {broken}")


@case("queue", "positive")
def later_writes_win(s: Subject) -> None:
    """Fills that overlap: each byte has the value of the last one over it."""
    buffer = s.memory(256)
    batch, wanted = Batch(), bytearray(256)
    for i in range(100):
        at, length = 4 * (i * 7 % 40), 4 * (1 + i * 5 % 20)
        batch.fill(Range(buffer, at, length), (i + 1) * 0x01010101)
        wanted[at : at + length] = bytes([i + 1]) * length
    s.completes(batch, "a hundred overlapping fills")
    expect(s.content(buffer) == bytes(wanted), "an earlier fill came after a later one")


@case("queue", "positive")
def a_read_comes_before_a_later_write(s: Subject) -> None:
    """A copy takes what lay there, not what a later command of the batch puts there."""
    a, b = s.memory(4096, 1), s.memory(4096)
    batch = Batch()
    for turn in range(32):
        batch.copy(Range(b, 128 * turn, 128), Range(a, 128 * turn, 128))
        batch.fill(Range(a, 128 * turn, 128), 0x02020202)
    s.completes(batch, "copies and fills")
    expect(s.content(b) == b"\x01" * 4096, "a copy saw a later fill")
    expect(s.content(a) == b"\x02" * 4096, "a fill was lost")
