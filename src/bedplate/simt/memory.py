"""The machine's global memory: windows of device addresses over host memory.

The machine's own memory is one reservation, so an access needs one range check; pages
cost nothing until they are touched. Allocations begin at multiples of 256, as a driver's
do: coalescing is judged by addresses, and the host's allocator would give 6 sectors where
a device needs 4. Addresses depend only on the order of calls, so a run can be repeated.

A caller may add windows over buffers of its own (a PCI device's memory), none over another;
an access that is in no window is a fault.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bedplate.core.units import format_bytes
from bedplate.simt import abi
from bedplate.simt.errors import LaunchInvalid, OutOfDeviceMemory
from bedplate.simt.telemetry import Counters

ALIGNMENT = 256
GUARD = 256
"""Bytes before each allocation that belong to none, so that the end of one is not the
beginning of the next and checks see who went too far."""
DEFAULT_BYTES = 16 << 30
"""Address space that the machine reserves; not memory."""
_NORESERVE = 0x4000
"""MAP_NORESERVE of Linux, which Python's mmap does not name on every version."""


@dataclass(frozen=True)
class HostWindow:
    """`memory`, any writable buffer, appears at the device address `base`."""

    base: int
    memory: Any


def _ascending(windows: Sequence[HostWindow], size: int) -> list[HostWindow]:
    """The windows over their bytes, by address; raises `LaunchInvalid` for what cannot be used."""
    found = []
    for window in windows:
        data = np.frombuffer(window.memory, np.uint8)
        if not data.flags.writeable:
            raise LaunchInvalid(
                f"the window at {window.base:#x} is over memory that cannot be written",
                remedy="give a bytearray, a writable array or a mapping",
            )
        found.append(HostWindow(window.base, data))
    found.sort(key=lambda window: window.base)
    end, last = 0, "nothing"
    for base, length in (
        *((window.base, len(window.memory)) for window in found if window.base < abi.GLOBAL_BASE),
        (abi.GLOBAL_BASE, size),
        *((window.base, len(window.memory)) for window in found if window.base >= abi.GLOBAL_BASE),
    ):
        if base < end:
            raise LaunchInvalid(f"the window at {base:#x} overlaps {last}")
        end, last = base + length, f"the one from {base:#x} to {base + length:#x}"
    if end > 1 << 64:
        raise LaunchInvalid(f"{last} goes past the last address")
    return found


class Memory:
    """Allocations, and bytes by device address."""

    def __init__(
        self,
        size: int = DEFAULT_BYTES,
        windows: Sequence[HostWindow] = (),
        counters: Counters | None = None,
    ) -> None:
        self.size = size
        self._counters = counters or Counters()
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
        self._map = mmap.mmap(-1, size, flags=flags)
        self.bytes = np.frombuffer(self._map, np.uint8)
        self.used = 0
        """End of the used part; the window ends there, so that wild addresses are found."""
        self.live: dict[int, int] = {}
        """Allocations: the bytes that were asked for, by address."""
        self.written: dict[int, np.ndarray[Any, np.dtype[np.bool_]]] = {}
        """Which bytes are known to be written, for allocations that the host never saw."""
        self._free: dict[int, list[int]] = {}
        self.windows = _ascending(windows, size)

    def allocate(self, size: int) -> int:
        """The device address of `size` bytes; the first use of them finds zeros."""
        rounded = max(-(-size // ALIGNMENT), 1) * ALIGNMENT
        if waiting := self._free.get(rounded):
            address = waiting.pop()
        else:
            if rounded + GUARD > self.size - self.used:
                raise OutOfDeviceMemory(
                    f"{format_bytes(size)} do not fit: {format_bytes(self.size - self.used)} of "
                    f"{format_bytes(self.size)} are free",
                    remedy="free arrays, or give the machine more memory",
                )
            address = abi.GLOBAL_BASE + self.used + GUARD
            self.used += GUARD + rounded
        self.live[address] = size
        self._counters.add(allocations=1, allocated_bytes=size)
        return address

    def free(self, address: int) -> None:
        """Give an allocation back; its bytes become junk."""
        asked = self.live.pop(address, None)
        if asked is None:
            raise LaunchInvalid(f"{address:#x} is not an allocation of this machine")
        self._counters.add(freed_bytes=asked)
        size = max(-(-asked // ALIGNMENT), 1) * ALIGNMENT
        self.written.pop(address, None)
        start = address - abi.GLOBAL_BASE
        self.bytes[start : start + size] = abi.JUNK
        self._free.setdefault(size, []).append(address)

    def freed(self) -> list[tuple[int, int]]:
        """Address and size of what was given back and not used again."""
        return [(address, size) for size, several in self._free.items() for address in several]

    def view(self, address: int, size: int) -> np.ndarray[Any, np.dtype[np.uint8]] | None:
        """The bytes at a device address, writable, or None when no window holds them all."""
        for base, memory in self.spans():
            if base <= address and address + size <= base + len(memory):
                return memory[address - base : address - base + size]
        return None

    def spans(self) -> list[tuple[int, np.ndarray[Any, np.dtype[np.uint8]]]]:
        """Each window as its device address and its bytes."""
        own = (abi.GLOBAL_BASE, self.bytes[: self.used])
        return [own, *((window.base, window.memory) for window in self.windows)]

    def table(self) -> Any:
        """The windows as the ABI wants them."""
        spans = self.spans()
        made = (abi.Window * len(spans))()
        for entry, (base, memory) in zip(made, spans, strict=True):
            entry.base, entry.size = base, len(memory)
            entry.host = memory.ctypes.data if len(memory) else self.bytes.ctypes.data
        return made

    def close(self) -> None:
        """Give the reservation back; arrays of this machine must not be used any more."""
        self.bytes = np.zeros(0, np.uint8)
        self.live.clear()
        self.written.clear()
        with contextlib.suppress(BufferError):  # who still looks at it keeps it until then
            self._map.close()
