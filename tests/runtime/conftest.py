"""What the scheduler's tests share: a cpu device, a scheduler on it, the conformance kernels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bedplate.core.paths import native_library_dir
from bedplate.hal.api import Device, Module, open_device
from bedplate.runtime.api import Scheduler


@pytest.fixture(scope="session")
def conform_module() -> Path:
    """The native module of the HAL's conformance suite."""
    return native_library_dir() / "conform" / "bedplate_hal_conform.so"


@pytest.fixture
def device() -> Iterator[Device]:
    """A cpu device of the test's own."""
    with open_device("cpu", trust_claims=True) as opened:
        yield opened


@pytest.fixture
def work(device: Device) -> Iterator[Scheduler]:
    """A scheduler on it."""
    with Scheduler(device) as opened:
        yield opened


@pytest.fixture
def kernels(device: Device, conform_module: Path) -> Module:
    """The conformance kernels on it."""
    return device.load_native_module(conform_module)
