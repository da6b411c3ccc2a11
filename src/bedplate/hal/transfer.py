"""Bytes between host and device memory that the host does not see.

Host memory is pinned for the time of one copy command on a queue of its own.
What the caller gave is held until the copy is done, also when the wait for it
is interrupted: the device may still write into it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bedplate.core.command import quoted
from bedplate.hal.batch import Batch
from bedplate.hal.buffer import Buffer, Range
from bedplate.hal.errors import Unsupported
from bedplate.hal.native import ffi

if TYPE_CHECKING:
    from bedplate.hal.device import Device
    from bedplate.hal.queue import Queue


class Transfer:
    """Copies of a device by pinned memory; Unsupported when it has no `pin_host`."""

    def __init__(self, device: Device) -> None:
        if "pin_host" not in device.info.capabilities:
            raise Unsupported(
                f"{device.id} neither shows its memory to the host nor pins host memory",
                remedy=f"run {quoted(f'hal conform {device.info.backend}')}",
            )
        self._device = device
        self._queue: Queue | None = None
        self._held: list[Any] = []
        # One copy at a time: a queue's count of what it submitted belongs to one thread.
        self._lock = threading.Lock()

    def read(self, span: Range) -> NDArray[np.uint8]:
        """The bytes of a range now; waits."""
        target = np.empty(span.length, np.uint8)
        self._copy(span, target, to_device=False)
        return target

    def write(self, span: Range, data: NDArray[np.uint8]) -> None:
        """Put as many bytes as the range has into it; waits."""
        self._copy(span, data, to_device=True)

    def _copy(self, span: Range, host: NDArray[np.uint8], *, to_device: bool) -> None:
        if span.length:
            with self._lock:
                self._copy_one(span, host, to_device=to_device)

    def _copy_one(self, span: Range, host: NDArray[np.uint8], *, to_device: bool) -> None:
        pinned = self._pin(host)
        batch = Batch()
        batch.copy(*((span, pinned) if to_device else (pinned, span)))
        if self._queue is None:
            self._queue = self._device.queue()
        self._held.append((host, pinned, batch))
        self._queue.submit(batch)
        self._queue.synchronize()
        self._held.clear()
        pinned.release()

    def _pin(self, host: NDArray[np.uint8]) -> Buffer:
        out = ffi.new("uint64_t *")
        pointer = ffi.cast("void *", host.ctypes.data)
        device = self._device
        device.check(device.api.mem.pin(device.handle, pointer, host.nbytes, out))
        return Buffer(device, int(out[0]), host.nbytes, 0)
