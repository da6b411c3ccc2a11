"""Timelines: 64-bit values that only grow, with a sticky error.

A host wait has a deadline; long ones are cut into slices, so that Ctrl-C is
heard while native code sleeps.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bedplate.hal import abi
from bedplate.hal.errors import InvalidArgument
from bedplate.hal.native import ffi, u64

if TYPE_CHECKING:
    from bedplate.hal.device import Device

SLICE_NS = 200_000_000
FOREVER_NS = 1 << 62

Fence = tuple["Timeline", int]
"""A timeline and the value it must reach, or will be moved to."""


class Timeline:
    """A timeline of a device; use `device.timeline()`."""

    def __init__(self, device: Device, initial: int = 0) -> None:
        self.device = device
        self.handle = device.create("timeline", u64(initial, "value"))

    @property
    def value(self) -> int:
        """Its value now. Raises DeviceError when it is poisoned."""
        out = ffi.new("uint64_t *")
        status = self.device.api.timeline.query(self.device.handle, self.handle, out)
        self.device.check(status, asynchronous=True)
        return int(out[0])

    def wait(self, value: int, timeout_ns: int = FOREVER_NS) -> None:
        """Sleep until it is at or past `value`.

        Raises DeadlineExceeded after `timeout_ns`, DeviceError with the code
        and sentence of the failure when it is poisoned.
        """
        if not 0 <= timeout_ns <= FOREVER_NS:
            raise InvalidArgument(f"a timeout of {timeout_ns} ns")
        u64(value, "value")
        deadline = time.monotonic_ns() + timeout_ns
        wait = self.device.api.timeline.wait_host
        while True:
            until = min(deadline, time.monotonic_ns() + SLICE_NS)
            status = wait(self.device.handle, self.handle, value, until)
            if status != abi.BP_DEADLINE or until == deadline:
                self.device.check(status, asynchronous=True)
                return

    def signal(self, value: int) -> None:
        """Move it from the host; InvalidArgument unless it grows."""
        signal = self.device.api.timeline.signal
        status = signal(self.device.handle, self.handle, u64(value, "value"))
        self.device.check(status)

    def destroy(self) -> None:
        """Give it back; waiters get WorkCancelled. Twice is fine."""
        if self.handle and not self.device.closed:
            handle, self.handle = self.handle, 0
            self.device.api.timeline.destroy(self.device.handle, handle)

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self.destroy()
