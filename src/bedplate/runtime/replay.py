"""Run a trace through allocation policies, on numbers alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bedplate.runtime.errors import OptionsInvalid, TraceInvalid
from bedplate.runtime.limits import UINT64, within
from bedplate.runtime.native import check, ffi, library
from bedplate.runtime.plugin import is_library, replay_library
from bedplate.runtime.trace import ALLOCATE, MOST_STREAMS, Trace

POLICIES = (
    "bedplate",
    "bedplate-noremap",
    "planned",
    "pytorch",
    "rmm",
    "best-fit",
    "buddy",
    "slab",
)
OURS = ("bedplate", "bedplate-noremap")
VALID_WITHIN = 0.01
"""A model of another allocator may miss its recorded peak by this part."""


@dataclass(frozen=True)
class Outcome:
    """What a policy held for a trace. Bytes and counts; arrays have a value a record."""

    policy: str
    live_peak_bytes: int
    reserved_peak_bytes: int
    reserved_end_bytes: int
    requests: int
    out_of_memory: int
    driver_calls: int
    note: str = ""
    places: NDArray[np.uint64] = field(repr=False, default_factory=lambda: np.empty(0, np.uint64))
    reserved: NDArray[np.uint64] = field(repr=False, default_factory=lambda: np.empty(0, np.uint64))

    @property
    def ratio(self) -> float:
        """Reserved over live, at their peaks; 1 is what no policy can beat."""
        return self.reserved_peak_bytes / self.live_peak_bytes if self.live_peak_bytes else 1.0


def replay(
    trace: Trace,
    policy: str = "bedplate",
    *,
    capacity_bytes: int = 1 << 62,
    recorded_peak_bytes: int | None = None,
) -> Outcome:
    """What `policy` would have held on a device of `capacity_bytes`.

    `recorded_peak_bytes` is what the recorded job's own allocator, PyTorch's,
    held at most: the model of it is marked when it misses that by more than a
    hundredth. A policy may be the path of a library, see `plugin`; then
    PolicyBroken says where it lied. Raises OptionsInvalid for an unknown policy, and
    TraceInvalid for more streams than the allocator knows.
    """
    within("capacity_bytes", capacity_bytes, 0, UINT64)
    if is_library(policy):
        made = replay_library(trace, policy, capacity_bytes)
        return Outcome(policy=policy, **vars(made))
    if policy not in POLICIES:
        raise OptionsInvalid(
            f"there is no policy {policy!r}",
            remedy=f"use one of {', '.join(POLICIES)}, or the path of a library",
        )
    trace = np.ascontiguousarray(trace)
    if policy in OURS:
        check_streams(trace["stream"][trace["action"] == ALLOCATE])
    places = np.zeros(len(trace), np.uint64)
    reserved = np.zeros(len(trace), np.uint64)
    out = ffi.new("bp_runtime_outcome *")
    name = policy.encode()
    check(
        library().bp_runtime_replay(
            name, len(name), capacity_bytes, _pointer(trace, "bp_runtime_record *"), len(trace),
            _pointer(places, "uint64_t *"), _pointer(reserved, "uint64_t *"), out,
        )
    )  # fmt: skip
    note = ""
    if policy == "pytorch":
        known = recorded_peak_bytes or 0
        close = abs(int(out.reserved_peak) - known) <= VALID_WITHIN * known
        note = "" if known and close else "MODEL NOT VALIDATED"
    return Outcome(
        policy=policy,
        live_peak_bytes=int(out.live_peak),
        reserved_peak_bytes=int(out.reserved_peak),
        reserved_end_bytes=int(out.reserved_end),
        requests=int(out.requests),
        out_of_memory=int(out.out_of_memory),
        driver_calls=int(out.driver_calls),
        note=note,
        places=places,
        reserved=reserved,
    )


def check_streams(streams: NDArray[np.uint32]) -> None:
    """Refuse a trace whose records name more streams than the allocator knows at once."""
    count = len(np.unique(streams))
    if count > MOST_STREAMS:
        raise TraceInvalid(
            f"the trace has {count:,} streams; `bedplate` knows {MOST_STREAMS:,} at once",
            remedy="give streams of the trace one name, or another --policy such as best-fit",
        )


@dataclass(frozen=True)
class Plan:
    """Where each request of a trace goes. Bytes."""

    offsets: NDArray[np.uint64]
    bytes: int
    lower_bound_bytes: int


def plan(trace: Trace) -> Plan:
    """Place a trace with its lifetimes known; the bound is the most alive at once.

    Greedy by size: no placement is promised to reach the bound.
    """
    trace = np.ascontiguousarray(trace)
    count = int(np.count_nonzero((trace["action"] == ALLOCATE) & (trace["bytes"] > 0)))
    offsets = np.zeros(count, np.uint64)
    size, bound = ffi.new("uint64_t *"), ffi.new("uint64_t *")
    check(
        library().bp_runtime_plan(
            _pointer(trace, "bp_runtime_record *"), len(trace),
            _pointer(offsets, "uint64_t *"), count, size, bound,
        )
    )  # fmt: skip
    return Plan(offsets, int(size[0]), int(bound[0]))


def _pointer(array: NDArray[Any], kind: str) -> Any:
    return ffi.cast(kind, array.ctypes.data)
