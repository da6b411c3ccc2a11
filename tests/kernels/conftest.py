"""One rig per implementation level; a level that this machine lacks is NOT RUN with its reason."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bedplate.hal.api import Device, open_device
from bedplate.kernels.api import LEVELS, KernelsError, select
from bedplate.kernels.rig import Rig


@pytest.fixture(scope="session")
def device() -> Iterator[Device]:
    """The cpu backend, claims trusted: these tests are what certifies its ops."""
    with open_device("cpu", trust_claims=True) as opened:
        yield opened


@pytest.fixture(scope="session", params=LEVELS)
def rig(request: pytest.FixtureRequest, device: Device) -> Iterator[Rig]:
    """Ops at one level."""
    try:
        ops = select(device, isa=request.param)
    except KernelsError as reason:
        pytest.skip(f"NOT RUN: {reason}")
    with device.queue() as queue:
        yield Rig(device, queue, ops)
