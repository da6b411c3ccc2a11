"""Races of random logs, against every pair of accesses and a clock for each thread."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simt.test_checks import KERNELS

from bedplate.simt.api import Machine
from bedplate.simt.checks import race
from bedplate.simt.checks.clocks import Clocks
from bedplate.simt.checks.log import STORES, Event, Kind
from bedplate.simt.checks.rows import SHARED, Traits, rows

THREADS = 40
SYNC_WARP = 0
"""The number of the instruction that orders lanes."""


@dataclass(frozen=True)
class Step:
    """An access of a warp (`kind` plain or atomic), or a sync of its lanes, or of all."""

    kind: str
    warp: int
    mask: int
    address: int
    stride: int
    size: int
    write: bool


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(["plain", "plain", "plain", "atomic", "lanes", "block"]),
        st.integers(0, 1),
        st.integers(1, 255),
        st.integers(0, 7),
        st.sampled_from([0, 1]),
        st.sampled_from([1, 2]),
        st.booleans(),
    ),
    max_size=14,
)


def lanes_of(step: Step) -> list[int]:
    """The lanes that a mask names; both warps have at least eight."""
    return [lane for lane in range(32) if step.mask >> lane & 1]


def place(step: Step, lane: int) -> int:
    """The address of a lane."""
    return (step.address + lane * step.stride) // step.size * step.size


def live(warp: int) -> int:
    """All lanes of a warp."""
    return 0xFFFFFFFF if warp == 0 else 0xFF


def by_arrays(steps: list[Step]) -> set[int]:
    """The bytes that race, as the checks find them."""
    events = np.zeros(2 * len(steps), np.dtype(Event))
    used = 0
    for number, step in enumerate(steps, 1):
        kind = {"lanes": Kind.SYNC, "block": Kind.WAIT}.get(step.kind, Kind.ACCESS)
        for warp in (0, 1) if step.kind == "block" else (step.warp,):
            event = events[used]
            used += 1
            event["kind"], event["warp"] = kind, warp
            event["mask"] = live(warp) if step.kind == "block" else step.mask
            event["instruction"] = SYNC_WARP if step.kind == "lanes" else number
            if kind is Kind.ACCESS:
                event["number"] = SHARED
                event["count"] = step.size + STORES * (step.write and step.kind == "plain")
            event["addresses"] = [place(step, lane) for lane in range(32)]
            event["values"] = number * 100 + np.arange(32)
            if step.kind == "lanes":
                event["values"] = step.mask
    count = len(steps) + 1
    accesses = [None, *(step if step.kind in ("plain", "atomic") else None for step in steps)]
    traits = Traits(
        np.full(count, SHARED),
        np.array([0 if step is None else step.size for step in accesses]),
        *(np.array([step is not None and step.kind == "atomic" for step in accesses]),) * 3,
    )
    every = rows(events[:used], traits)
    clocks = Clocks(THREADS, frozenset({SYNC_WARP}))
    clocks.play(events[:used])
    order = clocks.finish(every)
    found = set()
    for byte in range(64):
        mine = (every.address <= byte) & (byte < every.address + every.size.astype(np.uint64))
        if any(True for _ in race.within(order, np.flatnonzero(mine), 2, fenced=False)):
            found.add(byte)
    return found


def by_pairs(steps: list[Step]) -> set[int]:
    """The same from a vector clock of each thread and all pairs."""
    clock = np.eye(64, dtype=int)
    seen: list[tuple[int, int, int, bool, bool, np.ndarray]] = []

    def merge(threads: list[int]) -> None:
        clock[threads] = clock[threads].max(axis=0)
        clock[threads, threads] += 1

    for step in steps:
        threads = [32 * step.warp + lane for lane in lanes_of(step)]
        if step.kind == "block":
            merge(list(range(THREADS)))
        elif step.kind == "lanes":
            merge(threads)
        else:
            atomic = step.kind == "atomic"
            for lane, thread in zip(lanes_of(step), threads, strict=True):
                seen.append(
                    (thread, place(step, lane), step.size, step.write or atomic, atomic,
                     clock[thread].copy())
                )  # fmt: skip
    found = set()
    for one, other in itertools.combinations(seen, 2):
        common = set(range(one[1], one[1] + one[2])) & set(range(other[1], other[1] + other[2]))
        if not common or one[0] == other[0] or not (one[3] or other[3]) or (one[4] and other[4]):
            continue
        if other[5][one[0]] < one[5][one[0]]:
            found |= common
    return found


@settings(max_examples=120, deadline=None, derandomize=True)
@given(STEPS)
def test_against_all_pairs(steps: list[Step]) -> None:
    """Every byte that races is found, and no other."""
    assert by_arrays(steps) == by_pairs(steps)


def test_a_race_is_a_wrong_sum_under_another_schedule() -> None:
    """What trusts lanes to run in step is wrong for some seed. Source: numba/numba PR #6127."""
    text = (KERNELS / "bugs.sm_90a.ptx").read_text()
    sums = set()
    for seed in range(4):
        with Machine(threads=1, memory=1 << 20, schedule="adversarial", seed=seed) as machine:
            p, q = (
                machine.array(np.arange(64, dtype=np.int32)),
                machine.array(np.zeros(1, np.int32)),
            )
            machine.load(text, "bugs.ptx")["warp_synchronous"][1, 64](p, q, q)
            sums.add(int(q.numpy()[0]))
    assert sums - {64 * 63 // 2}
