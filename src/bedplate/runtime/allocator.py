"""The allocator of a device, its pools, streams and blocks.

    with Allocator(open_device("cpu")) as memory:
        main, side = memory.stream(), memory.stream()
        block = memory.pool("activations").allocate(1 << 20, main)
        block.used_on(side)
        block.free()

A stream stands over a timeline: `advance` says which value the work submitted
so far will signal, and a freed block is given to another stream only when that
value has passed.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Literal, Self

from bedplate.core.metrics import Histogram
from bedplate.hal.api import Buffer, Device, Range, Timeline
from bedplate.runtime.errors import OptionsInvalid, SteadyStateViolation
from bedplate.runtime.limits import UINT64, within
from bedplate.runtime.native import check, ffi, library
from bedplate.runtime.stats import PoolStats, read

if TYPE_CHECKING:
    from bedplate.runtime.tracer import Tracer

POOLS = ("weights", "kv", "activations", "scratch", "capture")
OPTIONS_VARIABLE = "BEDPLATE_RUNTIME_ALLOC_CONF"
MOST_BORROWED = 256
"""Segments whose buffer is kept."""
PIECE_BYTES = 2 << 20
"""What every device that maps addresses maps: the least of CUDA's devices."""

_BLOCK = ffi.typeof("bp_runtime_block *")
_SEALS = {"open": 0, "count": 1, "refuse": 2}
Seal = Literal["open", "count", "refuse"]


class Stream:
    """Work in order on a timeline; belongs to the thread that made it."""

    def __init__(self, memory: Allocator, timeline: Timeline | None, handle: int) -> None:
        self._memory = memory
        self.timeline = timeline
        out = ffi.new("uint32_t *")
        check(library().bp_runtime_stream_open(memory.native, handle, 0, out))
        self.number = int(out[0])

    def advance(self, value: int) -> None:
        """The work submitted so far will move the timeline to `value`. It never goes back."""
        within("a timeline's value", value, 0, UINT64)
        check(library().bp_runtime_stream_advance(self._memory.native, self.number, value))

    def close(self) -> None:
        """End it. Fences of freed blocks outlive it; so does its timeline, with the device."""
        check(library().bp_runtime_stream_close(self._memory.native, self.number))


class Block:
    """A live block. `bytes` is its size as cut, at least what was asked.

    Its fields are read when they are asked for: a pair of allocate and free needs none.
    """

    __slots__ = ("_memory", "_native")

    def __init__(self, memory: Allocator, native: Any) -> None:
        self._memory = memory
        self._native = native

    @property
    def handle(self) -> int:
        """Its name; 0 for a block of no bytes."""
        return int(self._native.handle)

    @property
    def address(self) -> int:
        """Its address; a number of ours on devices without addresses."""
        return int(self._native.address)

    @property
    def bytes(self) -> int:
        """Its size as cut."""
        return int(self._native.bytes)

    @property
    def memory(self) -> int:
        """The device's memory that it lies in; 0 where only addresses name it."""
        return int(self._native.memory)

    @property
    def offset(self) -> int:
        """Where in that memory."""
        return int(self._native.offset)

    def used_on(self, stream: Stream) -> None:
        """Work on another stream uses it: its free waits for that stream too."""
        self._memory.own(stream)
        if self.handle == 0:
            return
        check(library().bp_runtime_used_on(self._memory.native, self.handle, stream.number))
        if self._memory.tracer:
            self._memory.tracer.used_on(self, stream)

    def free(self) -> None:
        """Give it back. Raises BadBlock the second time."""
        memory = self._memory
        if memory.tracer is None:
            status = memory.free_native(memory.native, self._native.handle)
            if status:
                check(status)
            return
        with memory.tracer.freeing(self):
            check(memory.free_native(memory.native, self._native.handle))

    @property
    def range(self) -> Range:
        """Where it lies in the device's memory, for commands. Raises OptionsInvalid
        when only addresses name it."""
        return self._memory.range_of(self)

    def __repr__(self) -> str:
        return f"<Block {self.bytes} bytes at {self.address:#x}>"


class Pool:
    """One use of memory; see `Allocator.pool`."""

    def __init__(self, memory: Allocator, name: str) -> None:
        self._memory = memory
        self.name = name
        self.number = POOLS.index(name)

    def allocate(self, bytes: int, stream: Stream) -> Block:
        """A block of at least `bytes` for work on `stream`. No bytes give an empty block.

        Raises OutOfMemory, OverQuota, and SteadyStateViolation after `seal`.
        """
        if not 0 <= bytes < 1 << 64:
            raise OptionsInvalid(f"a block of {bytes} bytes", remedy="ask for 0 or more")
        memory = self._memory
        if stream._memory is not memory:
            memory.own(stream)
        out = ffi.new(_BLOCK)
        if memory.latency is None:
            status = memory.allocate_native(memory.native, self.number, bytes, stream.number, out)
        else:
            start_ns = time.monotonic_ns()
            status = memory.allocate_native(memory.native, self.number, bytes, stream.number, out)
            memory.latency.observe((time.monotonic_ns() - start_ns) / 1e9)
        if status:
            check(status)
        block = Block(memory, out)
        if memory.tracer is not None:
            memory.tracer.allocated(block, bytes, stream, self.number)
        return block

    def limit(self, bytes: int) -> None:
        """What it may hold from the device at most; 0 for no limit."""
        within("a limit", bytes, 0, UINT64)
        check(library().bp_runtime_quota(self._memory.native, self.number, bytes))

    def stats(self) -> PoolStats:
        """Its figures now."""
        out = ffi.new("bp_runtime_stats_out *")
        check(library().bp_runtime_stats(self._memory.native, self.number, out))
        return read(self.name, out)


class Allocator:
    """Pools over a device, best as a context. The device must outlive it.

    `options` is `key:value,key:value`, after those of `BEDPLATE_RUNTIME_ALLOC_CONF`;
    docs/reference/runtime.md lists them. Raises OptionsInvalid.
    """

    def __init__(self, device: Device, options: str = "") -> None:
        self.device: Device | None = device
        piece = PIECE_BYTES if "address_reserve" in device.info.capabilities else 0
        text = ",".join(filter(None, (os.environ.get(OPTIONS_VARIABLE, ""), options))).encode()
        out = ffi.new("bp_runtime **")
        api = ffi.cast("void *", device.native_api)
        check(library().bp_runtime_open(api, device.handle, piece, text, len(text), out))
        self._start(out[0])

    def _start(self, native: Any) -> None:
        self.native = native
        # Looked up once: each look costs as much as the call.
        self.allocate_native = library().bp_runtime_allocate
        self.free_native = library().bp_runtime_free
        self._segments: dict[int, Buffer] = {}
        self._seal: Seal = "open"
        self.latency: Histogram | None = None
        self.tracer: Tracer | None = None
        self.pools = {name: Pool(self, name) for name in POOLS}

    def stream(self) -> Stream:
        """A new stream over a timeline of its own, owned by the calling thread."""
        if self.device is None:
            raise OptionsInvalid("a device of numbers has no timelines")
        if self._seal == "refuse":
            raise SteadyStateViolation("sealed: a new stream would make a timeline of the device")
        timeline = self.device.timeline()
        return Stream(self, timeline, timeline.handle)

    def own(self, stream: Stream) -> None:
        """Raises OptionsInvalid for a stream of another allocator."""
        if stream._memory is not self:
            raise OptionsInvalid(
                f"stream {stream.number} is of another allocator",
                remedy="use one that this allocator's stream() gave",
            )

    def pool(self, name: str) -> Pool:
        """`weights`, `kv`, `activations`, `scratch` or `capture`."""
        if name not in self.pools:
            raise OptionsInvalid(
                f"there is no pool {name!r}", remedy=f"use one of {', '.join(POOLS)}"
            )
        return self.pools[name]

    def stats(self, pool: str) -> PoolStats:
        """The figures of a pool."""
        return self.pool(pool).stats()

    def seal(self, mode: Seal = "refuse") -> None:
        """From now on a call of the driver is refused, or counted as a violation.

        Calls are allocations, releases, maps, unmaps and waits. `open` ends it.
        """
        if mode not in _SEALS:
            raise OptionsInvalid(f"there is no seal {mode!r}", remedy="use open, count or refuse")
        check(library().bp_runtime_seal(self.native, _SEALS[mode]))
        self._seal = mode

    def trim(self) -> int:
        """Give memory with nothing in it back to the device; the bytes given back."""
        out = ffi.new("uint64_t *")
        check(library().bp_runtime_trim(self.native, out))
        self._segments.clear()
        return int(out[0])

    def check(self) -> None:
        """Check the invariants; RuntimeFault names the block that breaks one."""
        check(library().bp_runtime_check(self.native))

    def findings(self) -> list[str]:
        """What the sanitizer (option `quarantine_bytes`) found since the last call."""
        room, length = 1 << 16, ffi.new("uint64_t *")
        while True:
            buffer = ffi.new("char[]", room)
            check(library().bp_runtime_findings(self.native, buffer, room, length))
            if length[0] < room:
                return bytes(ffi.string(buffer)).decode().splitlines()
            room = int(length[0]) + 1

    def blocks(self) -> list[Any]:
        """Every block and hole, in address order within its segment; native structs."""
        count = ffi.new("uint64_t *")
        room = 1024
        while True:
            out = ffi.new("bp_runtime_seen[]", room)
            check(library().bp_runtime_blocks(self.native, out, room, count))
            if count[0] <= room:
                return list(out[0 : int(count[0])])
            room = int(count[0])

    def range_of(self, block: Block) -> Range:
        """See `Block.range`."""
        if self.device is None or block.memory == 0:
            raise OptionsInvalid(
                f"{block!r} is named by its address alone",
                remedy="pass the address, or open the allocator with mapping:off",
            )
        segment = self._segments.get(block.memory)
        if segment is None:
            # Segments come and go; what was borrowed of those that went is let go too.
            if len(self._segments) >= MOST_BORROWED:
                self._segments.clear()
            segment = self.device.borrow(block.memory)
            self._segments[block.memory] = segment
        return Range(segment, block.offset, block.bytes)

    def close(self) -> None:
        """Give all memory back, live blocks too. Twice is fine.

        After the device was closed, which gives all of its memory back, only
        what the host holds is left to release.
        """
        if self.native != ffi.NULL:
            native, self.native = self.native, ffi.NULL
            if self.device is not None and self.device.closed:
                check(library().bp_runtime_abandon(native))
            check(library().bp_runtime_close(native))

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return bool(self.native == ffi.NULL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
