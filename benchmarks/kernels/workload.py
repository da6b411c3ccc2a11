"""Our side of the kernel benchmarks: batches on a device of a chosen number of threads."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np

from bedplate.hal.api import Batch, Device, DType, Queue, open_device
from bedplate.kernels.api import BLOCK_FORMATS, OpSet, bf16_from_f32, encode_blocks, select

Timed = Callable[[], float]
LAYERS = 30
LAYER_SHAPES = ((960, 576), (576, 576), (3072, 576), (576, 1536))
"""(N, K) of a layer of the default model: q·k·v, output, gate·up, down."""


class Machine:
    """A cpu device with `threads` threads, its queue and its ops."""

    def __init__(self, threads: int) -> None:
        os.environ["BEDPLATE_HAL_CPU_THREADS"] = str(threads)
        self.device: Device = open_device("cpu")
        self.queue: Queue = self.device.queue()
        self.ops: OpSet = select(self.device)
        self.random = np.random.default_rng(0)

    def timed(self, batch: Batch, repeats: int = 1) -> float:
        """Seconds of one submission, wall clock, mean of `repeats` in a row."""
        start = time.perf_counter()
        for _ in range(repeats):
            self.queue.submit(batch)
        self.queue.synchronize()
        return (time.perf_counter() - start) / repeats

    def normal(self, *shape: int) -> np.ndarray:
        """Standard normal float32: zeros or ones would flatter some kernels."""
        return self.random.standard_normal(shape, np.float32)


def weight_stream(machine: Machine, kind: str, rows: int) -> tuple[Batch, int]:
    """One pass over all layers' weights in format `kind`: (batch, weight bytes).

    30 layers are several times the last-level cache's share, so that weights
    come from memory as in a real step. int8 activations.
    """
    batch, weight_bytes = Batch(), 0
    inputs = {k: machine.device.upload(machine.normal(rows, k)) for k in (576, 1536)}
    outputs = {n: machine.device.empty((rows, n), DType.F32) for n, _ in LAYER_SHAPES}
    for n, k in LAYER_SHAPES:
        blocks = encode_blocks(machine.normal(n, k), BLOCK_FORMATS[kind])
        for _ in range(LAYERS):
            packed = machine.ops.pack("quantized_matmul", blocks.data, DType[kind.upper()], (n, k))
            tensors = [inputs[k], packed, None, None, None, outputs[n]]
            machine.ops.record(batch, "quantized_matmul", tensors, activation=1)
            weight_bytes += packed.bytes
    return batch, weight_bytes


def product(machine: Machine, kind: str, m: int, k: int, n: int) -> Batch:
    """One product [m,k]·[k,n] with activations and weights f32 or bf16, f32 out."""
    values = machine.normal(m, k)
    a = machine.device.empty((m, k), DType[kind.upper()])
    machine.device.write(a, bf16_from_f32(values) if kind == "bf16" else values)
    packed = machine.ops.pack("matmul", machine.normal(n, k), DType[kind.upper()])
    batch = Batch()
    out = machine.device.empty((m, n), DType.F32)
    machine.ops.record(batch, "matmul", [a, packed, None, None, None, out])
    return batch


def read_roof() -> float:
    """Bytes per second of one thread reading 256 MiB once, by numpy's own loop."""
    words = np.ones(32 * 2**20, np.uint64)
    best = min(_seconds(lambda: np.bitwise_or.reduce(words)) for _ in range(5))
    return words.nbytes / best


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
