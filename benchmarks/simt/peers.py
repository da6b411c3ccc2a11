"""The saxpy loop beside those who also run kernels on a processor, in turn in every round.

    python -m benchmarks.simt.peers --python PYTHON --out FILE [--rounds N]

PYTHON is an interpreter with warp-lang and numba-cuda; a peer that does not start is NOT RUN
with its reason. Times are milliseconds of the calling thread's processor time for one launch
of 2^20 threads with 64 turns. Numba's simulator runs 2^8 threads and its time is scaled by
the number of threads, since its cost is one Python thread for each.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIZE, TURNS, FEW = 1 << 20, 64, 1 << 8
NAMES = ("bedplate", "numpy", "warp", "numba-simulator")


def ours() -> Callable[[], Any]:
    """The kernel as nvcc wrote it, on one host thread."""
    import numpy as np

    from bedplate.simt.api import Machine

    text = Path("tests/simt/kernels/first.sm_90a.ptx").read_text(encoding="utf-8")
    machine = Machine(threads=1)
    kernel = machine.load(text)["saxpy_loop"]
    x, y = (machine.array(np.ones(SIZE, np.float32)) for _ in range(2))
    return lambda: kernel[SIZE // 128, 128](np.float32(0.5), x, y, np.uint32(SIZE), np.int32(TURNS))


def with_numpy() -> Callable[[], Any]:
    """Whole arrays, two operations a turn."""
    import numpy as np

    x, y = np.ones(SIZE, np.float32), np.ones(SIZE, np.float32)

    def launch() -> None:
        value = y.copy()
        for _ in range(TURNS):
            np.add(np.multiply(value, np.float32(0.5)), x, out=value)
        y[:] = value

    return launch


def with_warp() -> Callable[[], Any]:
    """Warp's processor mode, compiled by its own clang."""
    import warp as wp

    wp.config.quiet = True

    @wp.kernel
    def saxpy_loop(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float), k: int):
        i = wp.tid()
        v = y[i]
        u = x[i]
        for _ in range(k):
            v = a * v + u
        y[i] = v

    x, y = (wp.ones(SIZE, dtype=float, device="cpu") for _ in range(2))
    return lambda: wp.launch(saxpy_loop, dim=SIZE, inputs=[0.5, x, y, TURNS], device="cpu")


def with_numba() -> Callable[[], Any]:
    """Numba's simulator: a Python thread for each thread."""
    # The simulator puts its own module where the kernel's globals have `cuda`.
    global cuda
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
    import numpy as np
    from numba import cuda

    @cuda.jit
    def saxpy_loop(a: Any, x: Any, y: Any, k: Any) -> None:
        i = cuda.grid(1)
        v, u = y[i], x[i]
        for _ in range(k):
            v = a * v + u
        y[i] = v

    x, y = np.ones(FEW, np.float32), np.ones(FEW, np.float32)
    return lambda: saxpy_loop[FEW // 128, 128](np.float32(0.5), x, y, TURNS)


MAKE = dict(zip(NAMES, (ours, with_numpy, with_warp, with_numba), strict=True))


def child(name: str) -> None:
    """One launch for each line of stdin; its milliseconds to stdout."""
    launch = MAKE[name]()
    launch()
    print("ready", flush=True)
    # The simulator's work is in threads of its own, so it needs the process's clock.
    clock = time.process_time if name == "numba-simulator" else time.thread_time
    scale = SIZE / FEW if name == "numba-simulator" else 1
    for _ in sys.stdin:
        began = clock()
        launch()
        print((clock() - began) * 1e3 * scale, flush=True)


def main() -> int:
    """Start all, measure in turn, and write what was found; 3 when one was NOT RUN."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--child")
    given = parser.parse_args()
    if given.child:
        child(given.child)
        return 0
    running, absent = {}, {}
    for name in NAMES:
        python = sys.executable if name in ("bedplate", "numpy") else given.python
        run = subprocess.Popen(
            [python, __file__, "--child", name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert run.stdout is not None
        while (line := run.stdout.readline()) and line != "ready\n":
            pass
        if line:
            running[name] = run
        else:
            assert run.stderr is not None
            absent[name] = (run.stderr.read().strip().splitlines() or ["it ended"])[-1]
    times: dict[str, list[float]] = {name: [] for name in running}
    for _ in range(given.rounds):
        for name, run in running.items():
            assert run.stdin is not None
            assert run.stdout is not None
            run.stdin.write("\n")
            run.stdin.flush()
            times[name].append(float(run.stdout.readline()))
    for run in running.values():
        assert run.stdin is not None
        run.stdin.close()
        run.wait()
    found = {name: statistics.median(values) for name, values in times.items()}
    for name, value in found.items():
        print(f"{name:<16}{value:12.2f} ms   {value / found['bedplate']:10.1f} times ours")
    for name, why in absent.items():
        print(f"{name:<16}NOT RUN: {why}")
    if given.out:
        told = {"load": os.getloadavg(), "rounds": given.rounds, "ms": times, "not_run": absent}
        given.out.write_text(json.dumps(told, indent=1) + "\n")
    return 3 if absent else 0


if __name__ == "__main__":
    sys.exit(main())
