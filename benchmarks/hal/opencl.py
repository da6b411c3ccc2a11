"""One OpenCL launch that is waited for, through the HAL and by the platform's own calls.

    python -m benchmarks.hal.opencl --out results.json [--quick]

Both launch a kernel of 64 items on the same device in the same process, in turn, and
wait until the host knows: ours by `queue.submit` of a recorded batch and `synchronize`,
the peer by `clEnqueueNDRangeKernel` and `clFinish` through ctypes with its arguments
set once. `launch_300` has 300 launches behind one another and one wait. The goal is no
slower.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

import numpy as np
from benchmarks.trial import Trial, begin, not_run

from bedplate.core.measurement import MeasuredDevice
from bedplate.core.samples import interleave, timed
from bedplate.hal.api import F32, U32, Batch, Device, HalError, open_device

ITEMS = 64
SOURCE = """
kernel void add(global float *x, float y, uint n) {
    if (get_global_id(0) < n)
        x[get_global_id(0)] += y;
}
"""
ALL_DEVICES = 0xFFFFFFFF
PROFILING = 2


class Peer:
    """The same kernel by the calls of OpenCL 1.2, on the first device of a platform."""

    def __init__(self, platform: str) -> None:
        self._cl = cl = ctypes.CDLL("libOpenCL.so.1")
        for name in ("clCreateContext", "clCreateCommandQueue", "clCreateProgramWithSource"):
            getattr(cl, name).restype = ctypes.c_void_p
        cl.clCreateKernel.restype = cl.clCreateBuffer.restype = ctypes.c_void_p
        device = ctypes.c_void_p(self._device(platform))
        made = ctypes.c_int()
        error = ctypes.byref(made)
        context = ctypes.c_void_p(
            cl.clCreateContext(None, 1, ctypes.byref(device), None, None, error)
        )
        queue = cl.clCreateCommandQueue(context, device, ctypes.c_ulong(PROFILING), error)
        text = ctypes.c_char_p(SOURCE.encode())
        program = ctypes.c_void_p(
            cl.clCreateProgramWithSource(context, 1, ctypes.byref(text), None, error)
        )
        self._must(cl.clBuildProgram(program, 1, ctypes.byref(device), None, None, None))
        kernel = cl.clCreateKernel(program, b"add", error)
        buffer = cl.clCreateBuffer(
            context, ctypes.c_ulong(1), ctypes.c_size_t(4 * ITEMS), None, error
        )
        self._must(made.value)
        self._queue, self._kernel = ctypes.c_void_p(queue), ctypes.c_void_p(kernel)
        for index, value in enumerate(
            (ctypes.c_void_p(buffer), ctypes.c_float(1), ctypes.c_uint(ITEMS))
        ):
            size = ctypes.c_size_t(ctypes.sizeof(value))
            self._must(cl.clSetKernelArg(self._kernel, index, size, ctypes.byref(value)))
        self._items = ctypes.byref(ctypes.c_size_t(ITEMS))

    def run(self, launches: int) -> None:
        """Launch and wait."""
        cl = self._cl
        for _ in range(launches):
            cl.clEnqueueNDRangeKernel(
                self._queue, self._kernel, 1, None, self._items, self._items, 0, None, None
            )
        self._must(cl.clFinish(self._queue))

    def _device(self, wanted: str) -> int:
        count = ctypes.c_uint()
        self._must(self._cl.clGetPlatformIDs(0, None, ctypes.byref(count)))
        platforms = (ctypes.c_void_p * count.value)()
        self._must(self._cl.clGetPlatformIDs(count, platforms, None))
        for platform in platforms:
            name = ctypes.create_string_buffer(256)
            self._cl.clGetPlatformInfo(
                ctypes.c_void_p(platform), 0x0902, ctypes.c_size_t(256), name, None
            )
            if name.value.decode() == wanted:
                device = ctypes.c_void_p()
                kind = ctypes.c_ulong(ALL_DEVICES)
                self._must(
                    self._cl.clGetDeviceIDs(
                        ctypes.c_void_p(platform), kind, 1, ctypes.byref(device), None
                    )
                )
                assert device.value is not None
                return device.value
        raise RuntimeError(f"no platform {wanted}")

    @staticmethod
    def _must(code: int) -> None:
        if code:
            raise RuntimeError(f"OpenCL gave {code}")


def ours(device: Device, launches: int) -> Callable[[], None]:
    """A recorded batch, submitted and waited for."""
    kernel = device.load_module("opencl_c", SOURCE).kernel("add")
    x = device.upload(np.zeros(ITEMS, "f4"))
    queue, batch = device.queue(), Batch()
    for _ in range(launches):
        batch.launch(kernel, (1,), [x, F32(1), U32(ITEMS)], block=(ITEMS,))

    def run() -> None:
        queue.submit(batch)
        queue.synchronize()

    return run


def measure(trial: Trial, device: Device, peer: Peer, launches: int) -> None:
    """Both ways, nanoseconds a launch."""
    info = device.info
    run = ours(device, launches)
    rounds = trial.rounds(300, 40) if launches == 1 else trial.rounds(60, 10)
    own, theirs = timed(run), timed(lambda: peer.run(launches))
    ratio = interleave(
        lambda: own() / launches,
        lambda: theirs() / launches,
        rounds=rounds,
        better="lower",
        seed=trial.seed or 0,
        warm_up=5,
    )
    trial.add(
        ratio.ours,
        ratio=ratio,
        rounds=rounds,
        peer_name=info.properties["opencl.platform"],
        peer_version=info.driver,
        name="opencl_launch_waited_for" if launches == 1 else f"opencl_launch_{launches}",
        device=MeasuredDevice(info.id, info.name, driver=info.driver),
        conditions={
            "items": ITEMS,
            "launches": launches,
            "memory": info.properties["opencl.memory"],
        },
    )
    print(
        f"{launches:>3} launches: {ratio.ours.p50 / 1e3:.1f} us each,"
        f" direct {ratio.peer.p50 / 1e3:.1f}, ratio {ratio.ratio:.3f}"
    )


def main() -> int:
    """Measure, print and store; 1 when a launch is slower than the peer's, 3 when NOT RUN."""
    trial = begin(
        "hal", __doc__, seed=20261130, unit="ns", better="lower", reasons={"goal": "no slower"}
    )
    try:
        device = open_device("opencl", trust_claims=True)
    except HalError as error:
        not_run(error.message)
    with device:
        trial.common["versions"] = {"platform": device.info.driver}
        peer = Peer(device.info.properties["opencl.platform"])
        for launches in (1, 300):
            measure(trial, device, peer, launches)
    trial.finish()
    return 1 if any((record.ratio or 0) < 1 for record in trial.records) else 0


if __name__ == "__main__":
    sys.exit(main())
