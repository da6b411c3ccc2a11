"""What the checks see of a block: every access, wait and end, in the order they happened.

A kernel that is compiled with this tool appends an event for each; when a block has run,
its list is looked at as arrays (`rows`, `clocks`), which is faster than looking at each
access alone and keeps the rules in one place. A list that is full drops what follows, and
that is told.
"""

from __future__ import annotations

import ctypes
import mmap
from ctypes import Structure, c_uint32, c_uint64
from enum import IntEnum
from typing import Any

import numpy as np
from llvmlite import ir

from bedplate.simt import abi, lanes
from bedplate.simt.emitter import Emitter
from bedplate.simt.lanes import I8, I32, I64, PTR
from bedplate.simt.module import Instruction
from bedplate.simt.scalar import LANES
from bedplate.simt.tool import Tool, Where

CAPACITY = 1 << 17
"""Events of one block: 71 MB of address space; matmul of 256 by tiles makes 4700."""
_NORESERVE = 0x4000


SPACE_CODES = {"global": 0, "shared": 1, "local": 2, "generic": 3}
"""`number` of an access; constants are global memory."""
STORES = 256
"""Added to the bytes in `count` of an access that stores."""


class Kind(IntEnum):
    """What happened."""

    ACCESS = 1
    WAIT = 2
    END = 3
    SYNC = 4


class Event(Structure):
    """`values` of an access are what lanes store; of a SYNC, whom each lane waits for."""

    _fields_ = [
        ("kind", c_uint32),
        ("instruction", c_uint32),
        ("mask", c_uint32),
        ("warp", c_uint32),
        ("number", c_uint32),
        ("count", c_uint32),
        ("reserved", c_uint64),
        ("addresses", c_uint64 * 32),
        ("values", c_uint64 * 32),
    ]


class EventLog:
    """Room for the events of one block, given to a launch as its trace."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        size = ctypes.sizeof(Event)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
        self._map = mmap.mmap(-1, capacity * size, flags=flags)
        self._events = np.frombuffer(self._map, np.dtype(Event))
        self.trace = abi.Trace(self._events.ctypes.data, capacity, 0)

    @property
    def full(self) -> bool:
        """Whether events were dropped."""
        return bool(self.trace.used > self.trace.capacity)

    @property
    def events(self) -> Any:
        """What was appended since `clear`, as an array of structures."""
        return self._events[: min(self.trace.used, self.trace.capacity)]

    def clear(self) -> None:
        """Begin again."""
        self.trace.used = 0


class LoggingTool(Tool):
    """Appends the events."""

    key = "check"
    # Looking at the log takes longer than running, and compiling is halved.
    optimised = False

    def accessed(
        self,
        emitter: Emitter,
        made: Instruction,
        space: str,
        where: Where,
        bytes: int,
        values: Any = (),
    ) -> None:
        """Addresses, and for stores a number that equal values have in common."""
        _append(
            emitter,
            Kind.ACCESS,
            made,
            emitter.mask,
            where.every(),
            _digest(emitter, values),
            number=ir.Constant(I32, SPACE_CODES.get(space, 0)),
            count=ir.Constant(I32, bytes + STORES * bool(values)),
        )

    def waited(self, emitter: Emitter, made: Instruction, number: Any, count: Any) -> None:
        """Which barrier, and how many threads it asks for."""
        _append(
            emitter, Kind.WAIT, made, emitter.block_mask, None, None, number=number, count=count
        )

    def synced(self, emitter: Emitter, made: Instruction, named: Any) -> None:
        """Whom each lane waits for."""
        wide = lanes.resized(emitter.builder, named, 64)
        wide = wide if lanes.is_vector(wide) else lanes.splat(emitter.builder, wide)
        _append(emitter, Kind.SYNC, made, emitter.mask, None, wide)

    def ended(self, emitter: Emitter, mask: Any) -> None:
        """Lanes are gone."""
        _append(emitter, Kind.END, None, mask, None, None)


def _digest(emitter: Emitter, values: Any) -> Any | None:
    """All elements of a lane mixed into 64 bits."""
    builder, mixed = emitter.builder, None
    for value in values:
        bits = lanes.lane_type(value).width
        wide = lanes.resized(builder, lanes.cast(builder, value, lanes.integer(bits)), 64)
        if mixed is not None:
            # A multiplier of Knuth's, so that (a, b) and (b, a) differ.
            mixed = builder.mul(mixed, lanes.like(mixed, 6364136223846793005))
            wide = builder.xor(mixed, wide)
        mixed = wide
    return mixed


def _append(
    emitter: Emitter,
    kind: Kind,
    made: Instruction | None,
    mask: Any,
    addresses: Any | None,
    values: Any | None,
    *,
    number: Any = None,
    count: Any = None,
) -> None:
    none = ir.Constant(I32, 0)
    arguments = [
        emitter.launch,
        ir.Constant(I32, int(kind)),
        ir.Constant(I32, 0xFFFFFFFF if made is None else made.number),
        mask,
        emitter.field(emitter.warp, abi.Warp, "index"),
        none if number is None else number,
        none if count is None else count,
        _kept(emitter, addresses, 0),
        _kept(emitter, values, 8 * LANES),
    ]
    function = lanes.declared(emitter.module, "log.append", ir.VoidType(), arguments)
    emitter.builder.call(function, arguments)


def _kept(emitter: Emitter, vector: Any | None, offset: int) -> Any:
    """A place of the scratch memory that holds the vector; null without one."""
    if vector is None:
        return ir.Constant(PTR, None)
    builder = emitter.builder
    where = builder.gep(emitter.scratch, [ir.Constant(I64, offset)], source_etype=I8)
    builder.store(vector, where, align=64)
    return where


def text(function: str) -> str:
    """The function `log.append` in LLVM's assembly."""
    if function != "log.append":
        raise ValueError(f"{function} is not the name of a logging function")

    def store(name: str, kind: str, value: str) -> str:
        offset = getattr(Event, name).offset
        return f"""  %at.{name} = getelementptr i8, ptr %event, i64 {offset}
  store {kind} %{value}, ptr %at.{name}, align 4
"""

    words = ("kind", "instruction", "mask", "warp", "number", "count")
    arguments = ", ".join(f"i32 %{word}" for word in words)
    stores = "".join(store(word, "i32", word) for word in words)
    copies = "".join(
        f"""  %none.{name} = icmp eq ptr %{name}, null
  br i1 %none.{name}, label %no.{name}, label %copy.{name}
copy.{name}:
  %to.{name} = getelementptr i8, ptr %event, i64 {getattr(Event, name).offset}
  call void @llvm.memcpy.p0.p0.i64(ptr %to.{name}, ptr %{name}, i64 {8 * LANES}, i1 false)
  br label %no.{name}
no.{name}:
"""
        for name in ("addresses", "values")
    )
    return f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @{function}(ptr %launch, {arguments}, ptr %addresses, ptr %values) noinline {{
  %none = icmp eq i32 %mask, 0
  br i1 %none, label %done, label %some
some:
  %pt = getelementptr i8, ptr %launch, i64 {abi.Launch.trace.offset}
  %trace = load ptr, ptr %pt
  %pu = getelementptr i8, ptr %trace, i64 {abi.Trace.used.offset}
  %used = load i64, ptr %pu
  %more = add i64 %used, 1
  store i64 %more, ptr %pu
  %pc = getelementptr i8, ptr %trace, i64 {abi.Trace.capacity.offset}
  %capacity = load i64, ptr %pc
  %room = icmp ult i64 %used, %capacity
  br i1 %room, label %append, label %done
append:
  %records = load ptr, ptr %trace
  %offset = mul i64 %used, {ctypes.sizeof(Event)}
  %event = getelementptr i8, ptr %records, i64 %offset
{stores}{copies}  br label %done
done:
  ret void
}}
"""
