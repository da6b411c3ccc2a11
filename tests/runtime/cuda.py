"""Programs that the runtime runs on a cuda device, and what they print.

On the HAL's stand-in for the driver everywhere, on the real one by `make device`; a
process each, because the driver is found by the library path. `KERNELS` is the PTX of
the HAL's conformance suite.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bedplate.core.paths import native_library_dir

KERNELS = native_library_dir() / "conform" / "kernels.ptx"

HEAD = """
import sys
import numpy as np
from bedplate.hal.api import *
from bedplate.hal.batch import U32, U64
from bedplate.runtime.api import *

SOON = 10_000_000_000
MIB = 1 << 20
device = open_device("cuda", trust_claims=True)
store = device.load_module("ptx", open(sys.argv[1], "rb").read()).kernel("store")
"""

GRAPH = """
work = Scheduler(device)
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
work.close()
print("done")
"""
GRAPH_SAYS = ["True 2 2", "1 7", "1 7", "1 7", "True 0", "done"]

SCHEDULER = """
checker = Checker()
with Scheduler(device, capacity=8, checker=checker) as work:
    streams = [work.stream(priority=number % 2) for number in range(4)]
    sums = [device.upload(np.zeros(256, "u4")) for _ in streams]
    last = []
    for turn in range(25):
        fences = []
        for number, stream in enumerate(streams):
            batch = Batch()
            batch.fill(sums[number], turn * 4 + number)
            fences.append(stream.submit(batch, wait=last, tag=turn))
        last = fences
    batch = Batch()
    for number in range(3):
        batch.copy(sums[number + 1], sums[number])
    end = streams[0].submit(batch, wait=last)
    work.wait(end, SOON)
    print([int(device.download(x)[255]) for x in sums])
    bad = Batch()
    bad.fill(sums[0], 5)
    never = device.timeline()
    parked = streams[1].submit(bad, wait=[end, (never, 1)], wait_ns=50_000_000, tag=77)
    behind = streams[2].submit(bad, wait=[parked])
    for fence in (parked, behind):
        try:
            work.wait(fence, SOON)
        except BatchFailed as error:
            print("failed" if "77" in str(error) else error)
    streams[1].reset()
    streams[2].reset()
    again = Batch()
    again.fill(sums[0], 9)
    work.wait(streams[1].submit(again, wait=[end]), SOON)
    print(int(device.download(sums[0])[0]), {found.kind for found in checker.findings()})
"""
SCHEDULER_SAYS = ["[96, 96, 96, 96]", "failed", "failed", "9 {'never'}"]

ALLOCATOR = """
with Allocator(device) as memory, device.queue() as queue:
    main, side = memory.stream(), memory.stream()
    pool = memory.pool("activations")

    def poke(block, offset, value):
        batch = Batch()
        batch.launch(store, (1,), [U64(block.address + offset), U32(value)])
        queue.submit(batch)
        queue.synchronize()

    blocks = [pool.allocate(6 * MIB, main) for _ in range(16)]
    for block in blocks:
        poke(block, 0, 1)
        poke(block, block.bytes - 4, 2)
    for block in blocks[::2]:
        block.free()
    pool.limit(pool.stats().reserved_bytes)
    large = pool.allocate(40 * MIB, main)
    poke(large, 39 * MIB, 3)
    stats = pool.stats()
    print(large.bytes == 40 * MIB, stats.remapped_bytes > 0, stats.open.unmap > 0)
    memory.check()
    side.advance(1)
    blocks[1].used_on(side)
    blocks[1].free()
    print(pool.stats().pending_free_bytes == 6 * MIB)
    side.timeline.signal(1)
    small = [pool.allocate(size, main) for size in (100, 5000, 300_000, 1 << 20)]
    for block in small:
        poke(block, 96, 4)
        block.free()
    pool.allocate(MIB, main)
    print(pool.stats().pending_free_bytes)
    memory.seal()
    for _ in range(2000):
        pool.allocate(5000, main).free()
    print(pool.stats().sealed_calls)
    try:
        pool.allocate(1 << 30, main)
    except SteadyStateViolation as error:
        print("sealed")
    memory.seal("open")
    before = pool.stats().reserved_bytes
    for block in (large, *blocks[3::2]):
        block.free()
    print(memory.trim() > 0, pool.stats().reserved_bytes < before)
print("done")
"""
ALLOCATOR_SAYS = ["True True True", "True", "0", "0", "sealed", "True True", "done"]

PROGRAMS = {
    "graph": (GRAPH, GRAPH_SAYS),
    "scheduler": (SCHEDULER, SCHEDULER_SAYS),
    "allocator": (ALLOCATOR, ALLOCATOR_SAYS),
}


def check(name: str, libraries: Path | None = None) -> None:
    """Run a program, with the stand-in in `libraries` as its driver, and hold it to its word."""
    text, wanted = PROGRAMS[name]
    changed = {"LD_LIBRARY_PATH": str(libraries)} if libraries else {}
    done = subprocess.run(
        [sys.executable, "-c", HEAD + text, KERNELS],
        env=os.environ | changed,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.splitlines() == wanted, done.stdout + done.stderr
    assert done.returncode == 0, done.stderr
