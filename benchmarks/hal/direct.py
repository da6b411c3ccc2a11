"""Recorded batches as plain calls of their kernels' entries, on a worker pool of their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cffi
from benchmarks.trial import ROOT

from bedplate.core.paths import native_library_dir
from bedplate.hal import abi
from bedplate.hal.api import Batch, Device
from bedplate.hal.native import ffi, new

LIBRARY = ROOT / "build" / "Release" / "native" / "hal" / "bedplate_hal_direct.so"

_own = cffi.FFI()
_own.include(ffi)
_own.cdef("""
int32_t bedplate_native_module_query(uint32_t, const bp_native_module **);
typedef struct { bp_native_entry entry; uint64_t blocks; bp_native_launch launch; }
    bp_direct_launch;
void *bp_direct_open(uint32_t threads);
int32_t bp_direct_run(void *direct, const bp_direct_launch *launches, uint32_t count);
void bp_direct_close(void *direct);
""")


class NotLaunches(Exception):
    """A batch holds a command that is no launch of the module."""


class Direct:
    """The launches of batches, in order, ready to run on the caller's thread and the pool's.

    The batches must outlive it: parameters hold the addresses of their buffers.
    """

    def __init__(self, device: Device, batches: Sequence[Batch], isa: str) -> None:
        """Raises NotLaunches when something else was recorded."""
        kernels = native_library_dir() / "kernels" / f"libbedplate_kernels_cpu_{isa}.so"
        self._module = _own.dlopen(str(kernels))
        self._library = _own.dlopen(str(LIBRARY))
        self._keep: list[Any] = []
        self._addresses: dict[int, int] = {0: 0}
        self._device = device
        entries = self._entries(kernels)
        commands = [
            (command, batch_kernels(batch)) for batch in batches for command in batch._commands
        ]
        self._count = len(commands)
        self._launches = _own.new("bp_direct_launch[]", self._count)
        for place, (command, names) in zip(self._launches, commands, strict=True):
            if command.kind != abi.BP_COMMAND_LAUNCH:
                raise NotLaunches(f"a command of kind {command.kind} is no launch")
            place.entry = entries[names[command.kernel]]
            self._fill(place, command)
        self._pool = self._library.bp_direct_open(int(device.info.properties["cpu.threads"]))
        if self._pool == _own.NULL:
            raise MemoryError("no memory or no threads for a worker pool")

    def __len__(self) -> int:
        return self._count

    def run(self) -> None:
        """All launches once. Raises RuntimeError with the code of the first that fails."""
        status = self._library.bp_direct_run(self._pool, self._launches, self._count)
        if status:
            raise RuntimeError(f"a kernel returned {status}")

    def close(self) -> None:
        """Give the pool back."""
        self._library.bp_direct_close(self._pool)

    def _entries(self, kernels: Path) -> dict[str, Any]:
        answer = _own.new("const bp_native_module **")
        if self._module.bedplate_native_module_query(abi.ABI_MAJOR, answer):
            raise NotLaunches(f"{kernels.name} is for another version")
        module = answer[0]
        found = (module.kernels[i] for i in range(module.kernel_count))
        return {ffi.buffer(k.name.data, k.name.length)[:].decode(): k.entry for k in found}

    def _fill(self, place: Any, command: Any) -> None:
        packed = bytearray()
        for i in range(command.argument_count):
            argument = command.arguments[i]
            if argument.kind == abi.BP_ARGUMENT_RANGE:
                address = self._address(argument.range.memory) + argument.range.offset
                data = address.to_bytes(8, "little")
            else:
                data = bytes(ffi.buffer(argument.data, argument.bytes))
            width = next(size for size in (8, 4, 2, 1) if len(data) >= size)
            packed += bytes(-len(packed) % width) + data
        parameters = _own.new("char[]", bytes(packed) + bytes(8))
        fault, cancel = _own.new("bp_native_fault *"), _own.new("uint32_t *")
        self._keep += [parameters, fault, cancel]
        launch = place.launch
        launch.head = (1, _own.sizeof("bp_native_launch"))
        launch.parameters, launch.parameters_bytes = parameters, len(packed)
        launch.grid, launch.block = list(command.grid), list(command.block)
        launch.dynamic_shared_bytes = command.dynamic_shared_bytes
        launch.fault, launch.cancel = fault, cancel
        place.blocks = command.grid[0] * command.grid[1] * command.grid[2]

    def _address(self, memory: int) -> int:
        if memory not in self._addresses:
            info = new("bp_memory_info")
            device = self._device
            device.check(device.api.mem.describe(device.handle, memory, info))
            self._addresses[memory] = int(info.address)
        return self._addresses[memory]


def batch_kernels(batch: Batch) -> dict[int, str]:
    """Names of the kernels that a batch launches, by handle."""
    return {kept.handle: kept.name for kept in batch._keep if type(kept).__name__ == "Kernel"}
