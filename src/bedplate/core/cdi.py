"""Container Device Interface names of our devices.

Provided by containers; asked by the device plugin of cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class CdiSource(Protocol):
    """Whoever generated the CDI specification of this machine."""

    def names(self, device: str) -> Sequence[str]:
        """The qualified CDI names of a device, such as `bedplate.local/gpu=0`.

        Empty when no specification on this machine covers it.
        """
        ...
