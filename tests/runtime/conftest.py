"""What the scheduler's tests share: the HAL's cpu device and kernels, a scheduler on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.hal.conftest import conform_module, device, kernels

from bedplate.hal.api import Device
from bedplate.runtime.api import Scheduler

__all__ = ["conform_module", "device", "kernels", "work"]


@pytest.fixture
def work(device: Device) -> Iterator[Scheduler]:
    """A scheduler on it."""
    with Scheduler(device) as opened:
        yield opened
