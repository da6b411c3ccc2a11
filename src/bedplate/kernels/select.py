"""From a device to its `OpSet`: which level its processor and this build allow."""

from __future__ import annotations

from pathlib import Path

from bedplate.core.paths import native_library_dir
from bedplate.hal.api import Device
from bedplate.kernels.cpu_module import CpuModule
from bedplate.kernels.errors import IsaError
from bedplate.kernels.generic import Generic
from bedplate.kernels.implementation import Implementation, TensorSource
from bedplate.kernels.opset import OpSet

LEVELS = ("generic", "avx2", "avx512", "avx512_bf16")
"""Instruction set levels of the `cpu` backend, each containing those before it."""


def levels_of(device: Device) -> tuple[str, ...]:
    """The levels a device may run, lowest first: up to its property `cpu.isa`."""
    best = device.info.properties.get("cpu.isa", "generic")
    return LEVELS[: LEVELS.index(best) + 1] if best in LEVELS else LEVELS[:1]


def select(device: Device, isa: str | None = None, *, weights: TensorSource | None = None) -> OpSet:
    """The ops of a device at its best level, or at `isa`.

    Without `isa` the level is the property `cpu.isa` (which `BEDPLATE_CPU_ISA`
    lowers); a build without that level's module uses the next lower one. Packed
    weights lie in `weights`, without it in buffers of the device. Raises
    `IsaError` for an unknown level, one the processor lacks, or a named one that
    was not built.
    """
    allowed = levels_of(device)
    if isa is not None and isa not in LEVELS:
        raise IsaError(f"no instruction set level {isa!r}, known: {', '.join(LEVELS)}")
    if isa is not None and isa not in allowed:
        raise IsaError(
            f"{device.id} does not run {isa}, its best level is {allowed[-1]}",
            remedy="leave BEDPLATE_CPU_ISA unset, or choose a lower level",
        )
    wanted = allowed if isa is None else allowed[: allowed.index(isa) + 1]
    level = next(one for one in reversed(wanted) if one == "generic" or _library(one).exists())
    if isa is not None and level != isa:
        raise IsaError(
            f"this build has no kernels for {isa}: {_library(isa).name} is missing",
            remedy="run `make build`, or choose another level",
        )
    source = device if weights is None else weights
    implementations: list[Implementation] = [Generic(device, source)]
    if level != "generic":
        implementations.insert(0, CpuModule(device, level, _library(level), source))
    return OpSet(device, level, implementations)


def _library(level: str) -> Path:
    return native_library_dir() / "kernels" / f"libbedplate_kernels_cpu_{level}.so"
