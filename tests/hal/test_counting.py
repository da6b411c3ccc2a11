"""The counting driver stands in the ABI, and is gone afterwards."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from bedplate.hal.api import Batch, Device, InvalidArgument, counted


def test_each_call_is_counted_by_table_and_name(device: Device) -> None:
    """What makes something and what gives it back; work and waits are not counted."""
    before = {name: getattr(device.api, name) for name in ("mem", "queue", "timeline", "capture")}
    with counted(device) as calls:
        tensor = device.upload(np.ones(4, "f4"))
        with device.queue() as queue:
            batch = Batch()
            batch.fill(tensor, 0)
            queue.submit(batch)
            queue.synchronize()
            graph = queue.record(batch)
            queue.launch(graph)
            queue.synchronize()
            graph.destroy()
        tensor.buffer.release()
    assert calls == {
        "mem.create": 1,
        "mem.release": 1,
        "queue.create": 1,
        "queue.destroy": 1,
        "timeline.create": 1,
        "timeline.destroy": 1,
        "capture.begin": 1,
        "capture.end": 1,
        "capture.release": 1,
    }
    assert {name: getattr(device.api, name) for name in before} == before
    device.allocate(64).release()
    assert calls["mem.create"] == 1


def test_a_refusal_keeps_its_sentence(device: Device) -> None:
    """The counted function is the backend's own: status and text come through."""
    with counted(device) as calls, pytest.raises(InvalidArgument, match="alignment"):
        device.allocate(64, alignment=3)
    assert calls == {"mem.create": 1}


def test_calls_of_other_threads_count_and_only_one_counts(device: Device) -> None:
    """A second count is refused, and the first ends as it began."""

    def take() -> None:
        device.allocate(64).release()

    with counted(device) as calls:
        with pytest.raises(InvalidArgument, match="already"), counted(device):
            pass
        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert calls == {"mem.create": 4, "mem.release": 4}
    with counted(device) as again:
        pass
    assert not again
