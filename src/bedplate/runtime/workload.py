"""Small traces by seed, for trying policies: each kind is hard in its own way.

    trace = workload("training", seed=7)

`training`: activations freed in reverse, sizes that repeat each step, and a few that
change. `serving`: requests of all sizes and lifetimes, never in order. `streams`: copies
on a second stream, told and waited for; with `forget`, a part of them is not told.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bedplate.runtime.errors import OptionsInvalid
from bedplate.runtime.trace import ALLOCATE, FREE, RECORD, SYNC, USE, USED_ON, Trace

MIB = 1 << 20
STEP_NS = 1000
MOST_RECORDS = 1_000_000


@dataclass
class _Writer:
    """Records in order; blocks are named by the order of their requests."""

    draw: random.Random
    most: int
    rows: list[tuple[int, ...]] = field(default_factory=list)
    names: int = 0

    @property
    def full(self) -> bool:
        return len(self.rows) >= self.most

    def add(self, action: int, name: int, bytes: int = 0, stream: int = 0) -> None:
        self.rows.append((len(self.rows) * STEP_NS, name, bytes, stream, action, 2, 0, 0))

    def allocate(self, bytes: int, stream: int = 0) -> int:
        self.names += 1
        self.add(ALLOCATE, self.names, bytes, stream)
        return self.names


def _training(out: _Writer, forget: float) -> None:
    layers = [out.draw.choice((2, 4, 8, 12)) * MIB for _ in range(24)]
    for size in layers:
        out.allocate(size * 2)
    while not out.full:
        tokens = out.draw.uniform(0.6, 1.0)
        kept = []
        for size in layers:
            scratch = out.allocate(int(size * tokens * out.draw.uniform(0.1, 3)))
            kept.append(out.allocate(int(size * tokens)))
            out.add(FREE, scratch)
        for name in reversed(kept):
            gradient = out.allocate(layers[out.draw.randrange(len(layers))])
            out.add(FREE, name)
            out.add(FREE, gradient)


def _serving(out: _Writer, forget: float) -> None:
    live: list[tuple[int, int]] = []
    while not out.full:
        now = len(out.rows)
        for entry in [entry for entry in live if entry[0] <= now]:
            live.remove(entry)
            out.add(FREE, entry[1])
        size = int(2 ** out.draw.uniform(9, 25))
        live.append((now + int(out.draw.lognormvariate(4, 1)), out.allocate(size)))


def _streams(out: _Writer, forget: float) -> None:
    live: list[int] = []
    while not out.full:
        name = out.allocate(out.draw.choice((1, 2, 4)) * MIB)
        live.append(name)
        if out.draw.random() < 0.5:
            out.add(USE, name, stream=1)
            if out.draw.random() >= forget:
                out.add(USED_ON, name, stream=1)
        if out.draw.random() < 0.1:
            out.add(SYNC, 0, stream=1)
        while len(live) > 8:
            out.add(FREE, live.pop(out.draw.randrange(len(live))))


WORKLOADS: dict[str, Callable[[_Writer, float], None]] = {
    "training": _training,
    "serving": _serving,
    "streams": _streams,
}


def workload(kind: str, *, seed: int, records: int = 4000, forget: float = 0.0) -> Trace:
    """About `records` records of a kind, the same for the same seed.

    `forget` is the part of the uses that `streams` does not tell. Raises
    OptionsInvalid for an unknown kind or a number that makes no sense.
    """
    if kind not in WORKLOADS:
        raise OptionsInvalid(
            f"there is no workload {kind!r}", remedy=f"use one of {', '.join(WORKLOADS)}"
        )
    if not 0 < records <= MOST_RECORDS:
        raise OptionsInvalid(
            f"records is {records}", remedy=f"give a whole number from 1 to {MOST_RECORDS:,}"
        )
    if not 0 <= forget <= 1:
        raise OptionsInvalid(f"forget is {forget}", remedy="give a part of the uses, from 0 to 1")
    out = _Writer(random.Random(seed), records)
    WORKLOADS[kind](out, forget)
    return np.array(out.rows, RECORD)
