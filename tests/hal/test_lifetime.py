"""What Python lets go of is given back to the device, and things say what they are."""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from bedplate.hal.abi import ABI_VERSION
from bedplate.hal.api import Device, DType, Module, Tensor, pack_attributes
from bedplate.hal.native import ffi, new


def memory_lives(device: Device, handle: int) -> bool:
    """Whether a memory handle is live."""
    return device.api.mem.describe(device.handle, handle, new("bp_memory_info")) == 0


def timeline_lives(device: Device, handle: int) -> bool:
    """Whether a timeline handle is live."""
    return device.api.timeline.query(device.handle, handle, ffi.new("uint64_t *")) == 0


def plan_lives(device: Device, handle: int) -> bool:
    """Whether a plan handle is live; a live one is given back by asking."""
    return device.ops.release(device.handle, handle) == 0


def convert_plan(device: Device) -> Any:
    """A plan of convert."""
    tensors = [device.empty((2, 32), "f4"), None, device.empty((2, 32), DType.BF16)]
    return device.plan_op("convert", tensors, pack_attributes("convert"))


@pytest.mark.parametrize(
    ("make", "lives"),
    [
        (lambda device: device.allocate(64), memory_lives),
        (lambda device: device.timeline(), timeline_lives),
        (convert_plan, plan_lives),
    ],
    ids=["buffer", "timeline", "plan"],
)
def test_what_nobody_holds_is_given_back(
    device: Device,
    make: Callable[[Device], Any],
    lives: Callable[[Device, int], bool],
) -> None:
    """Live while it is held, stale after the last reference is gone."""
    thing = make(device)
    handle = thing.handle
    if lives is not plan_lives:
        assert lives(device, handle)
    del thing
    gc.collect()
    assert not lives(device, handle)


@pytest.mark.parametrize(
    ("make", "give_back"),
    [
        (lambda device: device.timeline(), "destroy"),
        (lambda device: device.queue(), "destroy"),
        (lambda device: device.queue().record(), "destroy"),
        (convert_plan, "release"),
    ],
    ids=["timeline", "queue", "graph", "plan"],
)
@pytest.mark.parametrize("closed", [False, True])
def test_what_is_given_back_already_is_not_asked_about(
    device: Device, make: Callable[[Device], Any], give_back: str, closed: bool
) -> None:
    """Twice is fine, and so is a device that was closed and took all along."""
    thing = make(device)
    if not closed:
        getattr(thing, give_back)()
    thing.device = SimpleNamespace(closed=closed)  # asking it for its api fails
    getattr(thing, give_back)()
    thing.device = device


def test_things_say_what_they_are(device: Device, kernels: Module) -> None:
    """For logs and debuggers: kind, size, device."""
    tensor = Tensor(device.allocate(64), 0, (2, 4), "f4")
    assert repr(tensor) == "<Tensor [2, 4] F32 on cpu:0>"
    assert repr(tensor.buffer) == "<Buffer 64 bytes on cpu:0>"
    assert repr(device).startswith("<Device cpu:0 ")
    assert repr(device.backend).startswith("<Backend cpu /")
    assert device.backend.abi == ABI_VERSION
    assert repr(kernels.kernel("echo")) == "<Kernel echo of bedplate_hal_conform.so>"


def test_a_module_is_unloaded_once(device: Device, kernels: Module) -> None:
    """A second unload is nothing; its kernels are gone from both sides."""
    names = kernels.kernels()
    assert names[0] == "count_blocks"
    assert kernels.isa == "generic"
    kernels.unload()
    kernels.unload()
    assert kernels.handle == 0
