"""A device that exists only as numbers, with the allocator over it.

Its streams run when it is told, and its calls fail when it is told: what tests
and labs need to see a reuse that comes too early, or a driver that gives up.
"""

from __future__ import annotations

from bedplate.runtime.allocator import PIECE_BYTES, Allocator, Stream
from bedplate.runtime.limits import UINT64, within
from bedplate.runtime.native import check, ffi, library


class NumbersAllocator(Allocator):
    """An allocator over `capacity` bytes that nobody has.

    `piece` is what it maps at least, 0 for a device that cannot map. Timelines
    pass at once until `hold` is called, then only by `reach`.
    """

    def __init__(self, capacity: int, *, piece: int = PIECE_BYTES, options: str = "") -> None:
        self.device = None
        within("capacity", capacity, 0, UINT64)
        within("piece", piece, 0, UINT64)
        text = options.encode()
        out = ffi.new("bp_runtime **")
        check(library().bp_runtime_open_fake(capacity, piece, text, len(text), out))
        self._start(out[0])
        self._timelines = 0

    def stream(self) -> Stream:
        """A stream over a timeline of its own: the first is timeline 1."""
        self._timelines += 1
        return Stream(self, None, self._timelines)

    def hold(self) -> None:
        """From now on timelines stand still; they start at 0."""
        check(library().bp_runtime_fake_hold(self.native))

    def reach(self, timeline: int, value: int) -> None:
        """A timeline reaches a value."""
        within("value", value, 0, UINT64)
        check(library().bp_runtime_fake_reach(self.native, timeline, value))

    def fail_in(self, calls: int) -> None:
        """The driver call after so many calls fails, once."""
        check(library().bp_runtime_fake_fail_in(self.native, calls))

    def scribble(self, address: int, offset: int) -> None:
        """A late write: the byte at `offset` of the memory at `address`."""
        check(library().bp_runtime_fake_scribble(self.native, address, offset))

    def calls(self) -> dict[str, int]:
        """How often the driver was called, by function."""
        out = ffi.new("bp_runtime_fake_counts *")
        check(library().bp_runtime_fake_calls(self.native, out))
        return {name: int(getattr(out, name)) for name in dir(out)}
