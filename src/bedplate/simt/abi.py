"""What compiled code and its callers agree on: structures, codes, address windows.

`i32 launch(const Launch*, u64 first_block, u64 block_count)` runs blocks in a row on the
calling thread and returns 0, or minus a `Code` with the fault record filled in. Inside,
`i32 warp(const Launch*, Block*, Warp*)` returns `DONE`, the label that it waits at, or
`FAULTED`. The structures are read by offset, so their order may only grow at the end.
"""

from __future__ import annotations

import ctypes
from ctypes import Structure, c_int32, c_uint8, c_uint32, c_uint64, c_void_p
from enum import IntEnum

JUNK = 0xA5
"""The byte that memory holds before anything was written to it, or after it was given back."""

GLOBAL_BASE = 0x7F00_0000_0000
"""Where the machine's own memory begins; device addresses are the same on every run."""
SHARED_BASE = 0x0100_0000_0000
"""Generic addresses of shared memory."""
LOCAL_BASE = 0x0200_0000_0000
"""Generic addresses of a thread's local memory."""
DONE = -1
FAULTED = -2


PRINT_BYTES = 256
"""Of the arguments of one `printf`: 32 of 8 bytes."""


class Code(IntEnum):
    """Why a launch ended early."""

    BOUNDS = 1
    MISALIGNED = 2
    TRAP = 3
    BUDGET = 4
    CANCELLED = 5
    BARRIER = 6
    MEMORY = 7
    SYNC = 8
    DEADLOCK = 9


class Window(Structure):
    """Device addresses `base` to `base + size` are the host's bytes at `host`."""

    _fields_ = [("base", c_uint64), ("size", c_uint64), ("host", c_uint64)]


class FaultRecord(Structure):
    """Where it happened; `addresses` of the lanes in `mask` when memory was touched."""

    _fields_ = [
        ("code", c_uint32),
        ("instruction", c_uint32),
        ("mask", c_uint32),
        ("warp", c_uint32),
        ("block", c_uint64),
        ("addresses", c_uint64 * 32),
    ]


class TraceRecord(Structure):
    """One register as an instruction left it, for comparing the engines."""

    _fields_ = [
        ("instruction", c_uint32),
        ("mask", c_uint32),
        ("register", c_uint32),
        ("warp", c_uint32),
        ("values", c_uint64 * 32),
    ]


class Trace(Structure):
    """A buffer of records; `used` also counts those that found no room."""

    _fields_ = [("records", c_uint64), ("capacity", c_uint64), ("used", c_uint64)]


class PrintRecord(Structure):
    """One lane's call of `printf`: its format's address and its arguments (`printing`)."""

    _fields_ = [
        ("format", c_uint64),
        ("block", c_uint64),
        ("thread", c_uint32),
        ("bytes", c_uint32),
        ("data", c_uint8 * PRINT_BYTES),
    ]


class Ring(Structure):
    """Room for calls of `printf`; `used` also counts those that found none."""

    _fields_ = [("records", c_uint64), ("capacity", c_uint64), ("used", c_uint64)]


class Launch(Structure):
    """All that a launch is told; one for each host thread.

    `windows` but the first ascend, and none overlaps another. `sites` are `SITES` windows
    where accesses were found before; kernels that are compiled for many windows need them.
    """

    _fields_ = [
        ("struct_size", c_uint64),
        ("parameters", c_void_p),
        ("grid", c_uint32 * 3),
        ("block", c_uint32 * 3),
        ("windows", c_void_p),
        ("window_count", c_uint64),
        ("symbols", c_void_p),
        ("shared_bytes", c_uint64),
        ("dynamic_shared_bytes", c_uint64),
        ("budget", c_uint64),
        ("cancel", c_void_p),
        ("fault", c_void_p),
        ("trace", c_void_p),
        ("counters", c_void_p),
        ("printf", c_void_p),
        ("seed", c_uint64),
        ("sites", c_void_p),
    ]


SITES = 128
"""Windows that a launch over many remembers, by the number of an access; 3 KiB."""


class Block(Structure):
    """The block that runs; `local` is the host's memory for the warps' local variables."""

    _fields_ = [
        ("index", c_uint64),
        ("shared", c_uint64),
        ("ctaid", c_uint32 * 3),
        ("warps", c_uint32),
        ("barrier_warps", c_uint32),
        ("reserved", c_uint32),
    ]


class Warp(Structure):
    """A warp between two runs; its registers that live on follow behind it.

    `votes` counts the lanes that said yes at a barrier that reduces (for `and`: no), and
    `result` holds the sum of all warps when it let go.
    """

    _fields_ = [
        ("label", c_int32),
        ("live", c_uint32),
        ("index", c_uint32),
        ("arrived", c_uint32),
        ("barrier", c_uint32),
        ("barrier_threads", c_uint32),
        ("budget", c_uint64),
        ("local", c_uint64),
        ("votes", c_uint32),
        ("result", c_uint32),
        ("reserved", c_uint64 * 2),
    ]


ENTRY = ctypes.CFUNCTYPE(c_int32, c_void_p, c_uint64, c_uint64)
"""The type of `launch`; called through ctypes it runs without the interpreter's lock."""
