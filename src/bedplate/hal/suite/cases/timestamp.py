"""timestamp."""

from __future__ import annotations

from bedplate.hal import abi
from bedplate.hal.batch import Batch
from bedplate.hal.buffer import Range
from bedplate.hal.suite.registry import case
from bedplate.hal.suite.subject import Subject, expect

BAD = abi.BP_INVALID_ARGUMENT


@case("timestamp", "positive", catches=["wrong_timestamp"])
def time_does_not_go_back(s: Subject) -> None:
    """A hundred timestamps in one batch never fall, and the last is past the first."""
    buffer = s.memory(8 * 100)
    batch = Batch()
    for i in range(100):
        batch.timestamp(Range(buffer, 8 * i, 8))
    s.completes(batch, "a batch of timestamps")
    times = s.words(buffer, "u8")
    expect(times[0] > 0, "a timestamp is 0")
    expect(times == sorted(times), "timestamps go back")
    expect(times[-1] > times[0], "a hundred timestamps took no time")


@case("timestamp", "positive")
def a_timestamp_stays_inside(s: Subject) -> None:
    """Eight bytes, none beside."""
    buffer = s.memory(24, 0xEE)
    batch = Batch()
    batch.timestamp(Range(buffer, 8, 8))
    s.completes(batch, "a timestamp")
    raw = s.content(buffer)
    expect(raw[:8] + raw[16:] == b"\xee" * 16, "a timestamp wrote beside its place")


@case("timestamp", "negative")
def odd_places_are_refused(s: Subject) -> None:
    """Misaligned, too short, too long, past the end."""
    buffer = s.memory(24)
    for offset, length in ((4, 8), (0, 4), (0, 16), (24, 8)):
        batch = Batch()
        batch.timestamp(Range(buffer, offset, 8))
        batch._commands[0].destination.length = length
        s.refused_batch(batch, BAD, f"a timestamp into {length} bytes at {offset}")


@case("timestamp", "absent", catches=["hidden_timestamp"])
def timestamps_are_unsupported(s: Subject) -> None:
    """The command is refused."""
    batch = Batch()
    batch.timestamp(s.memory(8))
    s.refused_batch(batch, abi.BP_UNSUPPORTED, "a timestamp that is not claimed")
