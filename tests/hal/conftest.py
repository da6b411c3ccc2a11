"""What the HAL's tests share: an open cpu device, a queue, the conformance kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.hal.sanitized import Sanitized

from bedplate.core.paths import native_library_dir
from bedplate.hal.api import Device, Module, Queue, open_device


@pytest.fixture(scope="session")
def conform_module() -> Path:
    """The native module of the conformance suite."""
    return native_library_dir() / "conform" / "bedplate_hal_conform.so"


@pytest.fixture(scope="session")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Sanitized]:
    """Backends under a sanitizer; what was compiled before is kept in the build folder."""
    built: dict[str, Sanitized] = {}

    def of(sanitizer: str) -> Sanitized:
        if sanitizer not in built:
            built[sanitizer] = Sanitized(sanitizer, tmp_path_factory.mktemp(sanitizer))
        return built[sanitizer]

    return of


@pytest.fixture
def device() -> Iterator[Device]:
    """A cpu device of the test's own."""
    with open_device("cpu", trust_claims=True) as opened:
        yield opened


@pytest.fixture
def queue(device: Device) -> Iterator[Queue]:
    """A queue of that device."""
    with device.queue() as opened:
        yield opened


@pytest.fixture
def kernels(device: Device, conform_module: Path) -> Module:
    """The conformance kernels, loaded on that device."""
    return device.load_native_module(conform_module)
