"""The device timer, on the processor's clock and on one whose time is made."""

from __future__ import annotations

import time

import pytest

from bedplate.hal.api import (
    Batch,
    DeviceTimer,
    InvalidArgument,
    Module,
    Queue,
    Unsupported,
    open_device,
)
from bedplate.hal.open import device_infos, load


def test_work_is_timed_by_the_device(queue: Queue) -> None:
    """More work takes longer, and no round is missing."""
    timer = DeviceTimer(queue)
    buffer = queue.device.allocate(8 << 20)

    def record(count: int) -> list[float]:
        def fills(batch: Batch) -> None:
            for _ in range(count):
                batch.fill(buffer, 7)

        return timer.measure(fills, rounds=7)

    one, ten = record(1), record(10)
    assert len(one) == len(ten) == 7
    assert 0 < min(one) < min(ten)


def test_submission_is_not_inside(queue: Queue, kernels: Module) -> None:
    """Three hundred launches take less by the device's clock than with submit, on best rounds."""
    timer, kernel = DeviceTimer(queue), kernels.kernel("nothing")

    def launches(batch: Batch) -> None:
        for _ in range(300):
            batch.launch(kernel, (1,))

    inside = min(timer.measure(launches, rounds=20))
    batch, outside = Batch(), []
    launches(batch)
    for _ in range(20):
        start = time.monotonic_ns()
        queue.submit(batch)
        queue.synchronize()
        outside.append(time.monotonic_ns() - start)
    assert 0 < inside < min(outside)


def test_caches_are_flushed_before_each_round(queue: Queue) -> None:
    """What the flush writes lies there afterwards, and is not part of the time."""
    timer = DeviceTimer(queue, flush_bytes=1 << 20)
    timer.measure(lambda batch: None, rounds=1)
    assert timer._flush is not None
    assert set(timer._flush.view("u1").tolist()) == {0x5A}


def test_clocks_are_paired(queue: Queue) -> None:
    """On cpu both are CLOCK_MONOTONIC, so the pair must agree within its uncertainty."""
    pair = DeviceTimer(queue).clock_pair()
    assert pair.uncertainty_ns > 0
    assert abs(pair.device_ns - pair.host_ns) <= pair.uncertainty_ns


def test_its_own_cost_is_known(queue: Queue) -> None:
    """An empty measurement is short, and the clock's step is not 0."""
    timer = DeviceTimer(queue)
    assert timer.empty_ns() >= 0
    assert 0 < timer.resolution_ns() < 1_000_000


def test_wrong_questions_are_refused(queue: Queue) -> None:
    """No rounds, a negative flush."""
    with pytest.raises(InvalidArgument, match="0 rounds"):
        DeviceTimer(queue).measure(lambda batch: None, rounds=0)
    with pytest.raises(InvalidArgument, match="a flush of -1 bytes"):
        DeviceTimer(queue, flush_bytes=-1)


def test_a_device_without_timestamps_is_refused() -> None:
    """The liar that hides them, and so does not claim them."""
    infos = {i.properties["liar.lie"]: i for i in device_infos(load("liar"))}
    index = infos["hidden_timestamp"].index
    with (
        open_device(f"liar:{index}", trust_claims=True) as device,
        device.queue() as queue,
        pytest.raises(Unsupported, match="no certified timestamps"),
    ):
        DeviceTimer(queue)
