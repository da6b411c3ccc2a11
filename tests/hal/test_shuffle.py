"""The shuffler: every order that the contract allows, and one broken promise for each twin."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.hal.api import Batch, Device, DType, Fence, Range, open_device
from bedplate.hal.discovery import HIDDEN
from bedplate.hal.open import device_infos, load
from bedplate.hal.suite import liar
from bedplate.hal.suite.registry import Tier, all_cases
from bedplate.hal.suite.run import CaseResult, run, select, worker_command
from bedplate.hal.suite.subject import Subject
from bedplate.hal.suite.worker import run_case
from bedplate.kernels.api import ReferenceOracle

INFOS = device_infos(load("shuffle"))
BREACHES = [liar.lie_of(info) or "" for info in INFOS[1:]]
ORDERING = ("queue", "timeline", "timestamp")


@pytest.mark.parametrize(
    ("seed", "tier"),
    [
        ("1", "quick"),
        ("2", "quick"),
        ("3", "quick"),
        *(pytest.param(seed, "full", marks=pytest.mark.soak) for seed in ("1", "2", "3")),
    ],
)
def test_it_conforms_in_any_order(monkeypatch: pytest.MonkeyPatch, seed: str, tier: Tier) -> None:
    """One seed for each way of favouring queues; 1 faces every quick case, the others those about
    order; in full, all face all."""
    monkeypatch.setenv("BEDPLATE_HAL_SHUFFLE_SEED", seed)
    cases = select(INFOS[0].claims, tier)
    if tier == "quick" and seed != "1":
        cases = [case for case in cases if case.capability in ORDERING]
    wrong = [r for r in run(cases, worker_command("shuffle:0")) if r.verdict == "fail"]
    assert wrong == []


@pytest.mark.parametrize("index", range(1, len(INFOS)), ids=BREACHES)
def test_each_broken_promise_is_caught_by_name(index: int) -> None:
    """By a case that names it, and which the whole shuffler passes."""
    breach = BREACHES[index - 1]
    watchers = [case for case in all_cases().values() if breach in case.catches]
    found: dict[int, list[CaseResult]] = {}
    for device in (index, 0):
        found[device] = []
        for case in watchers:
            subject = Subject(load("shuffle"), device, ReferenceOracle())
            try:
                verdict, reason = run_case(case, subject)
            finally:
                subject.close()
            found[device].append(CaseResult(case.name, case.capability, verdict, reason))
    assert liar.caught(breach, watchers, found[index]), f"{breach} got away"
    assert all(result.verdict == "pass" for result in found[0]), found[0]


def test_it_is_taken_only_when_named() -> None:
    """As the liar is."""
    assert {"liar", "shuffle"} <= HIDDEN


@pytest.fixture(scope="module")
def device() -> Any:
    """One device for all examples."""
    with open_device("shuffle", trust_claims=True) as opened:
        yield opened


@dataclasses.dataclass(frozen=True)
class Step:
    """A batch on a queue: fill a place, then copy it over another."""

    queue: int
    filled: int
    copied: int
    value: int


STEPS = st.lists(
    st.builds(Step, *(st.integers(0, most) for most in (2, 5, 5, 250))), min_size=1, max_size=25
)


@given(steps=STEPS)
def test_fences_alone_make_the_order(device: Device, steps: list[Step]) -> None:
    """Fenced only against what touches the same places, three queues do as one would."""
    buffer = device.allocate(6 * 64)
    buffer.view("u1")[:] = 0
    queues, lines = [device.queue() for _ in range(3)], [device.timeline() for _ in range(3)]
    wanted = np.zeros((6, 64), "u1")
    counts = [0, 0, 0]
    touched: dict[tuple[int, int], int] = {}
    for step in steps:
        places = {step.filled, step.copied}
        waits: list[Fence] = [
            (lines[queue], number)
            for (queue, place), number in touched.items()
            if place in places and queue != step.queue
        ]
        batch = Batch()
        batch.fill(Range(buffer, 64 * step.filled, 64), step.value * 0x01010101)
        wanted[step.filled] = step.value
        if step.copied != step.filled:
            source = Range(buffer, 64 * step.filled, 64)
            batch.copy(Range(buffer, 64 * step.copied, 64), source)
            wanted[step.copied] = step.value
        counts[step.queue] += 1
        signal = (lines[step.queue], counts[step.queue])
        queues[step.queue].submit(batch, wait=waits, signal=[signal])
        touched |= {(step.queue, place): counts[step.queue] for place in places}
    for queue in queues:
        queue.synchronize()
    assert (buffer.view("u1").reshape(6, 64) == wanted).all()
    for queue in queues:
        queue.destroy()


def test_single_ops_keep_their_order(device: Device) -> None:
    """Queue.op after Queue.op, each on what the one before wrote."""
    with device.queue() as queue:
        x = device.upload(np.arange(64, dtype="f4").reshape(2, 32))
        for _ in range(10):
            half, back = device.empty((2, 32), DType.BF16), device.empty((2, 32), "f4")
            queue.op("convert", [x], [half])
            queue.op("convert", [half], [back])
            x = back
        got = queue.download(x)
    assert (got == np.arange(64, dtype="f4").reshape(2, 32)).all()
