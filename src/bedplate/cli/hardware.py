"""What this machine computes with, for people, from the HAL's own list."""

from __future__ import annotations

from collections.abc import Iterator

from bedplate.core.units import format_bytes


def describe_hardware(device: str) -> Iterator[str]:
    """A line for each device that the HAL found, and for each backend that cannot be used.

    Raises what `open_device` does when `device` is not among them.
    """
    from bedplate.hal.api import listing, open_device

    with open_device(device) as opened:
        chosen = opened.id
    for backend in listing():
        for found in backend.devices:
            properties = found["properties"]
            facts = [found["name"], format_bytes(found["memory_bytes"])]
            if isa := properties.get("cpu.isa"):
                facts.append(isa)
            if threads := properties.get("cpu.threads"):
                facts.append(f"{threads} threads")
            mark = "uses" if found["id"] == chosen else "found"
            yield f"{mark} {found['id']}: {', '.join(facts)}"
        if backend.reason:
            yield f"without {backend.name}: {backend.reason}"
