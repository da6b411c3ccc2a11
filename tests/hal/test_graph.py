"""Graphs: recorded once, launched as one; also on a device that has none."""

from __future__ import annotations

import dataclasses
import gc
import weakref

import numpy as np
import pytest

from bedplate.hal.api import (
    U64,
    Batch,
    Device,
    DeviceError,
    InvalidArgument,
    Module,
    Queue,
    Unsupported,
)

SECOND_NS = 1_000_000_000


def test_a_graph_is_what_its_batches_were(device: Device, queue: Queue, kernels: Module) -> None:
    """In order, as often as it is launched; clearing a batch changes nothing and frees nothing."""
    counts, seen = device.upload(np.zeros(5, "u4")), device.upload(np.zeros(5, "u4"))
    first, second = Batch(), Batch()
    first.launch(kernels.kernel("count_blocks"), (5,), [counts])
    second.copy(seen, counts)
    graph = queue.record(first, second)
    assert queue.download(counts).tolist() == [0] * 5
    first.clear()
    second.clear()
    gc.collect()
    for _ in range(3):
        queue.launch(graph)
    assert queue.download(seen).tolist() == [3] * 5
    graph.destroy()
    graph.destroy()


def test_a_graph_keeps_what_it_writes_to(device: Device, queue: Queue) -> None:
    """Until it is destroyed, whatever becomes of the batch and of the names."""
    buffer, batch = device.allocate(64), Batch()
    batch.fill(buffer, 0)
    graph, seen = queue.record(batch), weakref.ref(buffer)
    del buffer
    batch.clear()
    gc.collect()
    assert seen() is not None
    graph.destroy()
    del graph
    gc.collect()
    assert seen() is None


def test_a_launch_has_fences_as_a_batch_has(device: Device, queue: Queue) -> None:
    """It waits, signals, and stands in line on the queue."""
    gate, done, buffer = device.timeline(), device.timeline(), device.allocate(4)
    batch = Batch()
    batch.fill(buffer, 0x01010101)
    with device.queue() as other:
        graph = queue.record(batch)
        other.launch(graph, wait=[(gate, 1)], signal=[(done, 7)])
        assert done.value == 0
        gate.signal(1)
        done.wait(7, SECOND_NS)
        assert bytes(buffer.view("u1")) == b"\x01" * 4
        other.synchronize(SECOND_NS)


def test_a_wrong_batch_makes_no_graph(device: Device, queue: Queue) -> None:
    """The refusal is the batch's own, and the queue records no longer."""
    small, wrong, right = device.allocate(64), Batch(), Batch()
    wrong.fill(small, 0, 128)
    right.fill(small, 0x05050505)
    with pytest.raises(InvalidArgument, match="command 0"):
        queue.record(right, wrong)
    queue.submit(right)
    queue.synchronize(SECOND_NS)
    assert bytes(small.view("u1")) == b"\x05" * 64


def test_a_failure_names_the_place_in_the_graph(
    device: Device, queue: Queue, kernels: Module
) -> None:
    """Counted over all its batches, with the launch's tag; the queue goes on."""
    buffer = device.allocate(64)
    fill, fail = Batch(), Batch()
    fill.fill(buffer, 0)
    fill.fill(buffer, 1)
    fail.launch(kernels.kernel("fail_at"), (1,), [U64(0)])
    graph = queue.record(fill, fail)
    queue.launch(graph, tag=41)
    with pytest.raises(DeviceError, match=r"batch 41.*command 2"):
        queue.synchronize(SECOND_NS)
    queue.submit(fill)
    queue.synchronize(SECOND_NS)


def test_a_device_without_capture_says_so(
    device: Device, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An uncertified claim is none."""
    without = dataclasses.replace(device.info, capabilities=device.info.capabilities - {"capture"})
    monkeypatch.setattr(device, "info", without)
    with pytest.raises(Unsupported, match="no certified capture"):
        queue.record(Batch())
