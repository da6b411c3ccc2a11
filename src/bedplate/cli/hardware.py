"""One line on what this machine computes with, from the HAL's own list."""

from __future__ import annotations


def describe_hardware() -> str:
    """Every device the HAL found, in a line."""
    from bedplate.hal.api import open_device

    with open_device("cpu") as device:
        info = device.info
        isa = info.properties.get("cpu.isa", "")
        threads = info.properties.get("cpu.threads", "")
        return f"found {device.id}: {info.name} [{isa}], {threads} threads"
