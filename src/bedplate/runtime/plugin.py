"""Policies and rules of others, in shared libraries: `bedplate/policy.h` says what they export.

A policy gets its memory from the replay, so what it holds and how often it asks is
counted for it, and each address that it gives out is checked: it lies in one of its
segments and over nothing live. A library is code of this process: a crash of it is one.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bedplate.runtime.errors import OptionsInvalid, PolicyBroken
from bedplate.runtime.native import ffi
from bedplate.runtime.trace import ALLOCATE, FREE, Trace

PLUGIN_CDEF = """
typedef struct {
    void *self;
    uint64_t (*create)(void *self, uint64_t bytes);
    void (*release)(void *self, uint64_t address);
} bp_runtime_segments;
typedef struct {
    void *(*open)(const bp_runtime_segments *);
    uint64_t (*allocate)(void *policy, uint64_t bytes, uint32_t stream);
    void (*free)(void *policy, uint64_t address);
    void (*close)(void *policy);
} bp_runtime_policy;
const bp_runtime_policy *bp_runtime_policy_1(void);
"""
ffi.cdef(PLUGIN_CDEF)

ALIGNMENT = 256
GAP = 1 << 30
"""Segments do not touch, so that a block over the end of one is seen."""


def is_library(policy: str) -> bool:
    """Whether a policy's name is the path of a library."""
    return "/" in policy or policy.endswith(".so")


def entry(path: str | Path, name: str) -> Any:
    """A function that a library exports. Raises OptionsInvalid when there is none."""
    try:
        return getattr(ffi.dlopen(str(Path(path).absolute())), name)
    except (OSError, AttributeError) as cause:
        raise OptionsInvalid(
            f"{path} exports no {name}: {cause}", remedy="see bedplate/policy.h"
        ) from cause


@dataclass
class Replayed:
    """What a policy of a library did with a trace; bytes and counts."""

    live_peak_bytes: int = 0
    reserved_peak_bytes: int = 0
    reserved_end_bytes: int = 0
    requests: int = 0
    out_of_memory: int = 0
    driver_calls: int = 0
    places: np.ndarray[Any, np.dtype[np.uint64]] = field(
        default_factory=lambda: np.empty(0, np.uint64)
    )
    reserved: np.ndarray[Any, np.dtype[np.uint64]] = field(
        default_factory=lambda: np.empty(0, np.uint64)
    )


class _Segments:
    """The device: segments by address, and the blocks that are live in them."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._next = GAP
        self.held: dict[int, int] = {}
        self.reserved = 0
        self.calls = 0
        self.trouble = ""
        self.starts: list[int] = []
        self.ends: list[int] = []
        self._create = ffi.callback("uint64_t(void *, uint64_t)", self.create)
        self._release = ffi.callback("void(void *, uint64_t)", self.release)
        self.native = ffi.new("bp_runtime_segments *", (ffi.NULL, self._create, self._release))

    def create(self, _: Any, bytes: int) -> int:
        self.calls += 1
        if not bytes or bytes > self._capacity - self.reserved:
            return 0
        address = self._next
        self._next += (bytes + 2 * GAP - 1) // GAP * GAP
        self.held[address] = bytes
        self.reserved += bytes
        return address

    def release(self, _: Any, address: int) -> None:
        self.calls += 1
        if address not in self.held:
            self.trouble = f"released {address:#x}, which is no segment"
            return
        place = bisect.bisect_left(self.starts, address)
        if place < len(self.starts) and self.starts[place] < address + self.held[address]:
            self.trouble = f"released a segment with the block at {self.starts[place]:#x} live"
            return
        self.reserved -= self.held.pop(address)

    def enter(self, at: int, bytes: int) -> str:
        """What is wrong with a block there, or nothing, and it is live."""
        if at % ALIGNMENT:
            return f"gave {at:#x}, which is no multiple of {ALIGNMENT}"
        segment = at // GAP * GAP
        while segment > 0 and segment not in self.held:
            segment -= GAP
        if segment not in self.held or at + bytes > segment + self.held[segment]:
            return f"gave {bytes:,} bytes at {at:#x}, which lie in none of its segments"
        place = bisect.bisect_left(self.starts, at)
        if place < len(self.starts) and self.starts[place] < at + bytes:
            return (
                f"gave {bytes:,} bytes at {at:#x}, over the live block at {self.starts[place]:#x}"
            )
        if place and self.ends[place - 1] > at:
            return f"gave {at:#x}, inside the live block at {self.starts[place - 1]:#x}"
        self.starts.insert(place, at)
        self.ends.insert(place, at + bytes)
        return ""

    def leave(self, at: int) -> None:
        place = bisect.bisect_left(self.starts, at)
        del self.starts[place], self.ends[place]


def replay_library(trace: Trace, path: str | Path, capacity_bytes: int) -> Replayed:
    """Run a trace through the policy of a library.

    Raises OptionsInvalid for a library without one, and PolicyBroken with the
    record and what was wrong with the policy's answer.
    """
    functions = entry(path, "bp_runtime_policy_1")()
    device = _Segments(capacity_bytes)
    policy = functions.open(device.native)
    if policy == ffi.NULL:
        raise PolicyBroken(f"{path} did not open")
    made = Replayed(
        places=np.zeros(len(trace), np.uint64), reserved=np.zeros(len(trace), np.uint64)
    )
    live, open_at = 0, dict[int, tuple[int, int]]()
    fields = (trace[name].tolist() for name in ("action", "address", "bytes", "stream"))
    try:
        for record, (action, name, bytes, stream) in enumerate(zip(*fields, strict=True)):
            trouble = ""
            if action == ALLOCATE:
                made.requests += 1
                at = int(functions.allocate(policy, bytes, stream)) if bytes else 0
                made.out_of_memory += bytes > 0 and not at
                if at:
                    trouble = device.enter(at, bytes)
                    open_at[name] = at, bytes
                    made.places[record] = at
                    live += bytes
            elif action == FREE and name in open_at:
                at, freed = open_at.pop(name)
                live -= freed
                device.leave(at)
                functions.free(policy, at)
                made.places[record] = at
            trouble = trouble or device.trouble
            if trouble:
                raise PolicyBroken(f"record {record}: {path} {trouble}")
            made.reserved[record] = device.reserved
            made.live_peak_bytes = max(made.live_peak_bytes, live)
            made.reserved_peak_bytes = max(made.reserved_peak_bytes, device.reserved)
    finally:
        functions.close(policy)
    made.reserved_end_bytes, made.driver_calls = device.reserved, device.calls
    return made
