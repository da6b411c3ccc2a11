"""CPU kernels: weight streams against the read roof, products beside torch or numpy.

    python -m benchmarks.kernels --out results.json [--quick]

torch runs in its own process, by the Python that BEDPLATE_BENCH_TORCH_PYTHON
names; without it the peer is numpy, and bf16 has none. Rounds are interleaved.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.trial import Trial, begin

from bedplate.core.samples import interleave, summarise

from .workload import LAYER_SHAPES, LAYERS, Machine, product, read_roof, weight_stream

SHAPES = ((512, 576, 1536), (512, 1536, 576), (32, 576, 1536), (8, 576, 1536))
GEMV_GOAL = 0.70
TORCH = os.environ.get("BEDPLATE_BENCH_TORCH_PYTHON")


class TorchPeer:
    """torch in a process of its own."""

    def __init__(self, python: str) -> None:
        script = Path(__file__).with_name("torch_peer.py")
        self._process = subprocess.Popen(
            [python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.version = self._process.stdout.readline().strip()

    def seconds(self, kind: str, shape: tuple[int, int, int], repeats: int) -> float:
        """Seconds of one product."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{kind} {shape[0]} {shape[1]} {shape[2]} {repeats}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def numpy_seconds(shape: tuple[int, int, int], repeats: int) -> float:
    """Seconds of one float32 product by numpy."""
    m, k, n = shape
    random = np.random.default_rng(0)
    a, w = random.standard_normal((m, k), np.float32), random.standard_normal((n, k), np.float32)
    out = np.empty((m, n), np.float32)
    np.matmul(a, w.T, out=out)
    start = time.perf_counter()
    for _ in range(repeats):
        np.matmul(a, w.T, out=out)
    return (time.perf_counter() - start) / repeats


def main() -> int:
    """Measure, print and store; 3 when NOT RUN."""
    trial = begin("kernels", __doc__)
    rounds = trial.rounds(15, 3)
    streams(trial, rounds)
    batches(trial, rounds)
    products(trial, rounds)
    trial.finish()
    return 0


def streams(trial: Trial, rounds: int) -> None:
    """Weight bytes per second at batch 1 over the read roof, measured in turn."""
    for threads in (1, 2):
        machine = Machine(threads)
        for kind in ("q4_0", "q4_1", "q8_0"):
            batch, weight_bytes = weight_stream(machine, kind, 1)
            machine.timed(batch)
            rates, fractions = [], []
            for _ in range(rounds):
                roof = read_roof()
                rates.append(weight_bytes / machine.timed(batch, 3))
                fractions.append(rates[-1] / roof)
            summary = summarise(fractions)
            print(f"{kind} weight stream, {threads} threads: {np.median(rates) / 1e9:.1f} GB/s,"
                  f" {summary.p50:.2f} of one thread's read roof", flush=True)  # fmt: skip
            trial.add(
                summary,
                rounds=rounds,
                name=f"weight_stream_{kind}",
                unit="ratio",
                better="higher",
                goal=GEMV_GOAL,
                versions={"numpy": np.__version__},
                conditions={
                    "threads": threads,
                    "rows": 1,
                    "isa": machine.ops.isa,
                    "gigabytes_per_second": float(np.median(rates)) / 1e9,
                },
                quality={"suite": "tests/kernels", "activation": "int8"},
            )


def batches(trial: Trial, rounds: int) -> None:
    """FLOP per second of one pass over all layers' weights at 8 and 32 rows, from memory."""
    machine = Machine(1)
    flop_per_row = 2 * LAYERS * sum(n * k for n, k in LAYER_SHAPES)
    for kind in ("q4_0", "q4_1", "q8_0"):
        for rows in (8, 32):
            batch, _ = weight_stream(machine, kind, rows)
            machine.timed(batch)
            rates = [rows * flop_per_row / machine.timed(batch) / 1e9 for _ in range(rounds)]
            summary = summarise(rates)
            print(f"{kind} products of {rows} rows: {summary.p50:.0f} GFLOP/s", flush=True)
            trial.add(
                summary,
                rounds=rounds,
                name=f"layer_products_{kind}",
                unit="GFLOP/s",
                better="higher",
                versions={"numpy": np.__version__},
                conditions={"threads": 1, "rows": rows, "isa": machine.ops.isa},
                quality={"suite": "tests/kernels", "activation": "int8"},
            )


def products(trial: Trial, rounds: int) -> None:
    """FLOP per second of one thread beside torch, or numpy for float32."""
    machine = Machine(1)
    torch = TorchPeer(TORCH) if TORCH else None
    for kind in ("bf16", "f32"):
        for shape in SHAPES:
            flop = 2 * shape[0] * shape[1] * shape[2]
            repeats = max(1, int(4e8 / flop))
            batch = product(machine, kind, *shape)
            machine.timed(batch)

            def ours(batch=batch, flop=flop, repeats=repeats) -> float:  # type: ignore[no-untyped-def]
                return flop / machine.timed(batch, repeats) / 1e9

            def peer(shape=shape, flop=flop, repeats=repeats, kind=kind) -> float:  # type: ignore[no-untyped-def]
                if torch is not None:
                    return flop / torch.seconds(kind, shape, repeats) / 1e9
                return flop / numpy_seconds(shape, repeats) / 1e9

            common: dict[str, Any] = {
                "name": f"matmul_{kind}_{'x'.join(map(str, shape))}",
                "unit": "GFLOP/s",
                "better": "higher",
                "goal": 1.0 if kind == "bf16" else None,
                "conditions": {"threads": 1, "isa": machine.ops.isa},
                "quality": {"suite": "tests/kernels"},
                "rounds": rounds,
            }
            if torch is None and kind == "bf16":
                summary = summarise([ours() for _ in range(rounds)])
                print(f"{common['name']}: {summary.p50:.1f} GFLOP/s, no peer", flush=True)
                trial.add(summary, versions={"numpy": np.__version__}, **common)
                continue
            ratio = interleave(ours, peer, rounds=rounds, better="higher", seed=1)
            name, version = ("torch", torch.version) if torch else ("numpy", np.__version__)
            print(
                f"{common['name']}: {ratio.ours.p50:.1f} GFLOP/s, {name} {ratio.peer.p50:.1f},"
                f" ratio {ratio.ratio:.2f}",
                flush=True,
            )
            trial.add(
                ratio.ours,
                ratio=ratio,
                peer_name=name,
                peer_version=version,
                versions={name: version},
                seed=1,
                **common,
            )
    if torch is not None:
        torch.close()


if __name__ == "__main__":
    sys.exit(main())
