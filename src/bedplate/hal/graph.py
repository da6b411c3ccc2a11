"""Graphs: batches that were checked and compiled once and are launched as one.

A launch costs the same however many commands the graph has. What the batches use is
kept alive; it must not be released before the last launch is done, and the batches
may change after `record` without changing the graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bedplate.core.command import quoted
from bedplate.hal.errors import Unsupported

if TYPE_CHECKING:
    from bedplate.hal.device import Device


class Graph:
    """Recorded work of a device; use `queue.record`, then `queue.launch`."""

    def __init__(self, device: Device, handle: int, keeps: tuple[Any, ...]) -> None:
        self.device = device
        self.handle = handle
        self._keeps = keeps

    def destroy(self) -> None:
        """Give it back; launches that were made still run. Twice is fine."""
        if self.handle and not self.device.closed:
            handle, self.handle = self.handle, 0
            self.device.check(self.device.api.capture.release(self.device.handle, handle))

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self.destroy()


def capture_table(device: Device) -> Any:
    """The capture table; Unsupported unless `capture` may be relied on."""
    if "capture" not in device.info.capabilities:
        raise Unsupported(
            f"{device.id} has no certified capture",
            remedy=f"submit the batches, or run {quoted(f'hal conform {device.info.backend}')}",
        )
    return device.api.capture
