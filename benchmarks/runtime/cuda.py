"""What the runtime costs on a GPU, beside the driver's own ways, in one process.

    python -m benchmarks.runtime.cuda --out results.json [--quick]

A pair of allocate and free from Python at 4 KiB, 1 MiB and 64 MiB, beside
`cuMemAllocAsync` and `cuMemFreeAsync` of a pool that keeps its memory, called from
Python too (ctypes); a launch submitted through the scheduler, beside the HAL's
queue. Rounds take both sides in random order. Pairs run sealed: a call of the
driver would end the benchmark.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable

from benchmarks.trial import Trial, begin, not_run

from bedplate.core.measurement import MeasuredDevice
from bedplate.core.paths import native_library_dir
from bedplate.core.samples import interleave
from bedplate.hal.api import Batch, Device, HalError, open_device
from bedplate.runtime.api import Allocator, Scheduler

SIZES = {"4k": 4 << 10, "1m": 1 << 20, "64m": 64 << 20}
GOAL_PAIR_NS = 1100.0
"""Two calls by cffi at 251 ns and what is around them; see the runtime's brief."""
SOON_NS = 10_000_000_000
RELEASE_THRESHOLD = 4
SEED = 1


def per_turn(work: Callable[[], object], turns: int) -> Callable[[], float]:
    """Nanoseconds of one turn."""

    def measure() -> float:
        start = time.perf_counter_ns()
        for _ in range(turns):
            work()
        return (time.perf_counter_ns() - start) / turns

    return measure


def driver_pair(size: int) -> Callable[[], object]:
    """A pair of the driver's stream-ordered allocator, its pool never shrinking."""
    cuda = ctypes.CDLL("libcuda.so.1")
    if not (hasattr(cuda, "cuMemAllocAsync") and hasattr(cuda, "cuStreamCreate")):
        not_run("the driver has no stream-ordered allocator")
    pool, keep = ctypes.c_void_p(), ctypes.c_uint64(2**64 - 1)
    address, stream = ctypes.c_uint64(), ctypes.c_void_p()
    calls = [
        cuda.cuDeviceGetDefaultMemPool(ctypes.byref(pool), 0),
        cuda.cuMemPoolSetAttribute(pool, RELEASE_THRESHOLD, ctypes.byref(keep)),
        cuda.cuStreamCreate(ctypes.byref(stream), 1),
    ]
    if any(calls):
        not_run(f"the driver's pool said {calls}")
    bytes, out = ctypes.c_size_t(size), ctypes.byref(address)

    def pair() -> None:
        if cuda.cuMemAllocAsync(out, bytes, stream) or cuda.cuMemFreeAsync(address, stream):
            raise RuntimeError("the driver's allocator failed")

    return pair


def pairs(trial: Trial, device: Device) -> None:
    """A pair of ours and of the driver, at each size."""
    turns, rounds = (2_000, 5) if trial.quick else (20_000, 15)
    with Allocator(device) as memory:
        stream = memory.stream()
        pool = memory.pool("activations")
        for name, size in SIZES.items():
            memory.seal("open")
            pool.allocate(size, stream).free()
            memory.seal()
            ours = per_turn(lambda size=size: pool.allocate(size, stream).free(), turns)
            theirs = per_turn(driver_pair(size), turns)
            ratio = interleave(ours, theirs, rounds=rounds, better="lower", seed=SEED)
            trial.add(
                ratio.ours,
                rounds=rounds,
                name=f"cuda_pair_{name}",
                unit="ns",
                better="lower",
                conditions={"interface": "Python", "sealed": True},
                peer_name="cuMemAllocAsync, cuMemFreeAsync by ctypes",
                peer_version=device.info.driver,
                ratio=ratio,
                goal=GOAL_PAIR_NS,
            )
            print(f"pair {name:<5}{ratio.ours.p50:9.0f} ns, the driver's {ratio.peer.p50:.0f}")


def submits(trial: Trial, device: Device) -> None:
    """A batch of one launch through the scheduler and through the queue alone."""
    turns, rounds = (200, 5) if trial.quick else (2_000, 15)
    module = device.load_module(
        "ptx", (native_library_dir() / "conform" / "kernels.ptx").read_bytes()
    )
    batch = Batch()
    batch.launch(module.kernel("nothing"), (1,), [])
    with Scheduler(device) as work, device.queue() as queue:
        stream = work.stream()

        def ours() -> float:
            spent = per_turn(lambda: stream.submit(batch), turns)()
            stream.synchronize(SOON_NS)
            return spent

        def theirs() -> float:
            spent = per_turn(lambda: queue.submit(batch), turns)()
            queue.synchronize(SOON_NS)
            return spent

        ratio = interleave(ours, theirs, rounds=rounds, better="lower", seed=SEED)
    trial.add(
        ratio.ours,
        rounds=rounds,
        name="cuda_submit",
        unit="ns",
        better="lower",
        conditions={"interface": "Python", "batch": "one launch"},
        peer_name="the HAL's queue",
        peer_version=device.info.driver,
        ratio=ratio,
    )
    print(f"submit    {ratio.ours.p50:9.0f} ns, the queue's {ratio.peer.p50:.0f}")


def main() -> int:
    """Measure, print and store; 1 when a goal is missed, 3 when NOT RUN."""
    try:
        device = open_device("cuda", trust_claims=True)
    except HalError as error:
        not_run(error.message)
    with device:
        info = device.info
        measured_on = MeasuredDevice(info.id, info.name, info.properties["cuda.uuid"], info.driver)
        versions = {"abi": "runtime.h 1", "driver": info.driver}
        trial = begin("runtime", __doc__, versions=versions, device=measured_on)
        pairs(trial, device)
        submits(trial, device)
        return trial.finish()


if __name__ == "__main__":
    sys.exit(main())
