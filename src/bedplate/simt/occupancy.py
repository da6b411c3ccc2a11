"""Occupancy: how many blocks of a kernel an SM holds at once, and what forbids one more.

Pure arithmetic on what the hardware hands out: warp slots, block slots, registers by
sub-partition, shared memory in units and carve-outs, barriers, and the virtual resource
of compute capability 10 and above. Register counts come from `ptxas`, never from PTX.

Source: the behaviour of NVIDIA's `cuda_occupancy.h` (12.1 as of CUDA 13.0), with which
`tests/simt/golden/occupancy.py` compares random launches; device limits from the
table of compute capabilities in the CUDA C++ Programming Guide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bedplate.core import nearest
from bedplate.simt.errors import LaunchInvalid

WARP = 32
SUB_PARTITIONS = 4
REGISTER_UNIT = 256
"""Registers are given to a warp in multiples of this."""

MOST_REGISTERS = 256
"""Of a thread, as the launch check has it; ptxas itself stops at 255."""

_KIB = 1024
_SMALL = (0, 8, 16, 32, 64)
_BELOW_100 = (*_SMALL, 100)
_BELOW_228 = (*_SMALL, 100, 132, 164, 196, 228)


@dataclass(frozen=True, slots=True)
class Architecture:
    """What one SM of a compute capability has. Sizes are in bytes.

    `threads` is None where devices of the capability differ. `carveouts` are the shares of
    the first-level cache that can be shared memory; `reserved` is what the driver takes of
    each block's. `barriers` counts hardware barriers per block slot; occupancy asks for
    them from 9.0 on. `virtual` is 0 where there is no such resource.
    """

    capability: tuple[int, int]
    blocks: int
    threads: int | None
    carveouts: tuple[int, ...]
    shared_unit: int = 128
    reserved: int = _KIB
    registers: int = 64 * _KIB
    barriers: int = 2
    virtual: int = 0

    @property
    def name(self) -> str:
        """As ptxas calls it."""
        return "sm_{}{}".format(*self.capability)

    @property
    def shared(self) -> int:
        """All the shared memory that an SM can have."""
        return self.carveouts[-1]

    @property
    def shared_per_block(self) -> int:
        """What a block may use without asking for more."""
        return 48 * _KIB

    @property
    def shared_per_block_optin(self) -> int:
        """And what it may use when the kernel's attribute allows it."""
        return self.shared - self.reserved


def _architecture(
    major: int,
    minor: int,
    blocks: int,
    threads: int | None,
    carveouts: tuple[int, ...],
    *,
    shared_unit: int = 128,
    reserved: int = _KIB,
    barriers: int = 2,
    virtual: int = 0,
) -> tuple[str, Architecture]:
    made = Architecture(
        (major, minor),
        blocks,
        threads,
        tuple(size * _KIB for size in carveouts),
        shared_unit,
        reserved,
        barriers=barriers,
        virtual=virtual,
    )
    return made.name, made


ARCHITECTURES: dict[str, Architecture] = dict(
    [
        _architecture(7, 0, 32, 2048, (*_SMALL, 96), shared_unit=256, reserved=0),
        _architecture(7, 5, 16, 1024, (32, 64), shared_unit=256, reserved=0),
        _architecture(8, 0, 32, 2048, (*_SMALL, 100, 132, 164)),
        _architecture(8, 6, 16, 1536, _BELOW_100, barriers=1),
        _architecture(8, 7, 16, 1536, (*_SMALL, 100, 132, 164), barriers=1),
        _architecture(8, 9, 24, 1536, _BELOW_100, barriers=1),
        _architecture(9, 0, 32, 2048, _BELOW_228),
        _architecture(10, 0, 32, 2048, _BELOW_228, virtual=128),
        _architecture(10, 1, 24, 2048, _BELOW_228, barriers=1, virtual=128),
        _architecture(10, 3, 32, 2048, _BELOW_228, virtual=128),
        _architecture(11, 0, 24, None, _BELOW_228, barriers=1, virtual=128),
        _architecture(12, 0, 24, 1536, _BELOW_100, barriers=1, virtual=128),
        _architecture(12, 1, 24, 1536, _BELOW_100, barriers=1, virtual=128),
    ]
)


def architecture(name: str) -> Architecture:
    """The limits of `sm_90`, `sm_90a` or `9.0`; raises `LaunchInvalid` for one not listed."""
    text = name.strip().lower()
    if found := re.fullmatch(r"(\d+)\.(\d)", text):
        text = f"sm_{found[1]}{found[2]}"
    text = re.sub(r"^(sm|compute)_(\d+)[af]?$", r"sm_\2", text)
    if text not in ARCHITECTURES:
        raise LaunchInvalid(
            f"the occupancy of {name!r} is not known",
            remedy=nearest.hint(text, ARCHITECTURES) or f"one of {', '.join(ARCHITECTURES)}",
        )
    return ARCHITECTURES[text]


@dataclass(frozen=True, slots=True)
class Usage:
    """What one block of a kernel uses.

    `registers` of a thread as ptxas reports them; shared memory in bytes, static and
    dynamic apart. `max_dynamic_shared` is the kernel's attribute of that name, None for as
    much as the launch uses; without `opt_in` a block is held to 48 KiB. `barriers` are
    numbered barriers, `virtual` units of the resource of 10.0 and above.
    """

    threads: int
    registers: int
    static_shared: int = 0
    dynamic_shared: int = 0
    max_dynamic_shared: int | None = None
    opt_in: bool = True
    barriers: int = 1
    virtual: int = 0


RESOURCES = ("warps", "blocks", "registers", "shared memory", "barriers", "virtual resources")


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Blocks of an SM by resource (None: that one sets no limit), and what follows.

    `limiters` are the resources whose limit is the smallest. `registers` and `shared` are
    what a block is given, after rounding up.
    """

    architecture: Architecture
    usage: Usage
    limits: dict[str, int | None]
    registers: int
    shared: int
    threads_per_sm: int

    @property
    def blocks(self) -> int:
        """Resident blocks of an SM."""
        return min(limit for limit in self.limits.values() if limit is not None)

    @property
    def limiters(self) -> tuple[str, ...]:
        """What stands at that number."""
        return tuple(name for name, limit in self.limits.items() if limit == self.blocks)

    @property
    def warps(self) -> int:
        """Resident warps of an SM."""
        return self.blocks * -(-self.usage.threads // WARP)

    @property
    def share(self) -> float:
        """Resident warps of those that an SM can have, 0 to 1."""
        return self.warps / (self.threads_per_sm // WARP)


def occupancy(
    arch: str | Architecture,
    usage: Usage,
    *,
    carveout_percent: int | None = None,
    max_threads_per_block: int = 1024,
    threads_per_sm: int | None = None,
    registers_per_block: int | None = None,
) -> Occupancy:
    """Resident blocks of a kernel on one SM.

    `carveout_percent` is the preferred share of shared memory, 0 to 100, None for all of
    it. The other three replace the architecture's limits by a device's own. Raises
    `LaunchInvalid` for values that no device has; a block that does not fit is no error
    but an occupancy of 0.
    """
    sm = arch if isinstance(arch, Architecture) else architecture(arch)
    _check(usage, carveout_percent)
    threads = threads_per_sm or sm.threads
    if threads is None:
        raise LaunchInvalid(
            f"devices of {sm.name} differ in how many threads an SM has",
            remedy="give --threads-per-sm, as the device's properties have it",
        )
    warps = -(-usage.threads // WARP)
    by_registers, registers = _by_registers(sm, usage, warps, registers_per_block or sm.registers)
    by_shared, shared = _by_shared(sm, usage, carveout_percent)
    fits = usage.threads <= max_threads_per_block
    limits = {
        "warps": threads // WARP // warps if fits else 0,
        "blocks": sm.blocks,
        "registers": by_registers,
        "shared memory": by_shared,
        "barriers": _by_barriers(sm, usage),
        "virtual resources": sm.virtual // usage.virtual if sm.virtual and usage.virtual else None,
    }
    return Occupancy(sm, usage, limits, registers, shared, threads)


def by_block_size(
    arch: str | Architecture, usage: Usage, *, threads_per_sm: int | None = None
) -> Iterator[Occupancy]:
    """The occupancy of the same kernel in blocks of every whole number of warps."""
    for threads in range(WARP, 1024 + WARP, WARP):
        yield occupancy(arch, replace(usage, threads=threads), threads_per_sm=threads_per_sm)


def _check(usage: Usage, carveout_percent: int | None) -> None:
    if usage.threads < 1:
        raise LaunchInvalid(f"a block of {usage.threads} threads is none")
    for what, value in (
        ("registers", usage.registers),
        ("bytes of static shared memory", usage.static_shared),
        ("bytes of dynamic shared memory", usage.dynamic_shared),
        ("barriers", usage.barriers),
        ("virtual resources", usage.virtual),
    ):
        if value < 0:
            raise LaunchInvalid(f"a kernel cannot use {value} {what}")
    if carveout_percent is not None and not 0 <= carveout_percent <= 100:
        raise LaunchInvalid(f"a carve-out of {carveout_percent} % is not between 0 and 100")


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _by_registers(
    sm: Architecture, usage: Usage, warps: int, per_block: int
) -> tuple[int | None, int]:
    """Whole warps fit into each sub-partition; a launch is checked as if it used all four."""
    per_warp = _up(usage.registers * WARP, REGISTER_UNIT)
    given = per_warp * warps
    if usage.registers > MOST_REGISTERS or per_warp * _up(warps, SUB_PARTITIONS) > per_block:
        return 0, given
    if not per_warp:
        return None, 0
    resident = sm.registers // SUB_PARTITIONS // per_warp * SUB_PARTITIONS
    return resident // warps, given


def _by_shared(
    sm: Architecture, usage: Usage, carveout_percent: int | None
) -> tuple[int | None, int]:
    """A block's share is rounded to units; the SM's is the next carve-out that was asked for,
    or that one block needs."""
    static = usage.static_shared + sm.reserved
    given = _up(static + usage.dynamic_shared, sm.shared_unit)
    allowed = usage.dynamic_shared
    if usage.max_dynamic_shared is not None:
        allowed = usage.max_dynamic_shared
    limit = sm.shared_per_block
    if usage.opt_in and static + allowed > limit:
        limit = sm.shared_per_block_optin
    if (usage.opt_in and usage.dynamic_shared > allowed) or given > limit + sm.reserved:
        return 0, given
    wanted = sm.shared
    if carveout_percent is not None:
        wanted = sm.shared * carveout_percent // 100
    carved = next(size for size in sm.carveouts if size >= wanted)
    if carved < given:
        carved = next(size for size in sm.carveouts if size >= given)
    return (carved // given if given else None), given


def _by_barriers(sm: Architecture, usage: Usage) -> int | None:
    if sm.capability < (9, 0) or not usage.barriers:
        return None
    return sm.blocks * sm.barriers // usage.barriers
