"""Which device of the opencl backend belongs to a platform, for tests."""

from __future__ import annotations

import pytest

from bedplate.hal.api import HalError
from bedplate.hal.device import DeviceInfo
from bedplate.hal.open import device_infos, load

PLATFORMS = ("Portable Computing Language", "Oclgrind")


def platform_device(platform: str) -> DeviceInfo:
    """The first device of a platform; NOT RUN where the platform is not installed."""
    try:
        infos = device_infos(load("opencl"))
    except HalError as error:
        pytest.skip(f"NOT RUN: {error.message}")
    for info in infos:
        if info.properties["opencl.platform"] == platform:
            return info
    pytest.skip(f"NOT RUN: no OpenCL platform {platform!r} here")
