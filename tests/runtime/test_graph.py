"""Graphs on a device that captures: the cuda backend on the HAL's stand-in for the driver."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[1] / "hal" / "native" / "cuda"
PROGRAM = """
import numpy as np
from bedplate.hal.api import Batch, open_device
from bedplate.runtime.api import Scheduler

SOON = 10_000_000_000
with open_device("cuda", trust_claims=True) as device, Scheduler(device) as work:
    main, side = work.stream(), work.stream()
    x, y = (device.upload(np.zeros(16, "u4")) for _ in range(2))
    write, copy, clear = Batch(), Batch(), Batch()
    write.fill(x, 7)
    copy.copy(y, x)
    clear.fill(y, 1)
    with work.record(main, side) as recording:
        side.submit(copy, wait=[main.submit(write)])
    graph = recording.graph
    print(graph.captured, graph.batches, graph.commands)
    for _ in range(3):
        main.submit(clear)
        main.synchronize(SOON)
        gate = device.timeline()
        fence = main.launch(graph, wait=[(gate, 1)])
        before = int(device.download(y)[0])
        work.signal((gate, 1))
        work.wait(fence, SOON)
        print(before, int(device.download(y)[0]))
    main.submit(write)
    main.synchronize(SOON)
    late = main.launch(graph)
    graph.release()
    work.wait(late, SOON)
    with work.record(main) as empty:
        pass
    print(empty.graph.captured, empty.graph.batches)
    work.wait(main.launch(empty.graph), SOON)
    print("done")
"""


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stand-in as libcuda.so.1."""
    folder = tmp_path_factory.mktemp("cuda")
    subprocess.run([NATIVE / "build.sh", folder], check=True)
    return folder


def test_a_device_that_captures_runs_the_graph_itself(fake: Path) -> None:
    """The same results as by submitting again, and the graph says that it is the device's."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"LD_LIBRARY_PATH": str(fake)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "True 2 2", done.stdout + done.stderr
    assert lines[1:4] == ["1 7"] * 3
    assert lines[-1] == "done", done.stderr
    assert done.returncode == 0
