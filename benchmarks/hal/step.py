"""A serving step through the HAL, beside the same kernels called without it.

    python -m benchmarks.hal.step --out results.json [--quick]

An engine decodes the default model at batch 1 and at batch 8; the batches and the
arrays of one of its steps are kept. That very step is then run in turn by
`queue.submit` and a wait, as the engine does it, and by calling the entries of the
same kernels with the same parameters on a worker pool like the device's own
(`native/hal/bench/direct.c`), nothing else between them. Both write the same
memory, and the logits must be the same bits. The ratio is what a served token
keeps of its speed through the HAL; scheduling and HTTP are in neither. The goal
is 0.99. It takes two minutes on two cores that are otherwise idle.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.hal.direct import LIBRARY, Direct, NotLaunches
from benchmarks.serving import ours
from benchmarks.trial import Trial, begin, not_run

from bedplate.core.samples import interleave
from bedplate.hal.abi import ABI_VERSION
from bedplate.serving.api import Engine, ServingError

GOAL = 0.99
BATCHES = (1, 8)
CONTEXT = 128
TOKENS_PER_VALUE = 64
"""Tokens behind one value: long enough that a lost time slice does not decide a round."""

STALL_NS = 30 * 10**9


class Step:
    """One decode step of an engine, as often as one likes."""

    def __init__(self, engine: Engine, batch: int, seed: int) -> None:
        """Decode `batch` requests and keep their last common step."""
        runner: Any = engine._runner
        self._runner, self._batch = runner, batch
        kept: dict[str, Any] = {}
        run = runner.run

        def watched(plan: Any, stall_ns: int) -> Any:
            if plan.token_count == plan.row_count == plan.sample_count == batch:
                kept["arrays"] = {k: v.copy() for k, v in runner.arrays.arrays.items()}
                kept["rows"] = runner.sample_rows.copy()
                kept["parts"] = runner._parts(plan)
            return run(plan, stall_ns)

        runner.run = watched
        try:
            ours.decode(engine, batch=batch, context=CONTEXT, steps=4, seed=seed)
        finally:
            del runner.run
        for name, array in kept["arrays"].items():
            runner.arrays[name][:] = array
        runner.sample_rows[:] = kept["rows"]
        runner._counts[:] = batch
        self._parts = kept["parts"]
        self.batches = [batch for part in self._parts for batch in part]

    def run(self) -> None:
        """Through the HAL."""
        self._runner._submit(self._parts, 0, STALL_NS)

    def outcome(self) -> bytes:
        """The bits of the logits and the sampled ids; forgets them."""
        runner = self._runner
        logits = runner.logits(self._batch)
        found = logits.tobytes() + runner._sampled.view()[: self._batch].tobytes()
        logits[:] = np.nan
        runner._sampled.view()[:] = -2
        return found


def rate(run: Callable[[], None], batch: int) -> Callable[[], float]:
    """Tokens a second of one value."""
    steps = TOKENS_PER_VALUE // batch

    def measure() -> float:
        start_ns = time.perf_counter_ns()
        for _ in range(steps):
            run()
        return steps * batch * 1e9 / (time.perf_counter_ns() - start_ns)

    return measure


def measure(trial: Trial, batch: int, rounds: int) -> None:
    """Both ways at one batch size; a difference in bits ends the run."""
    assert trial.seed is not None
    with ours.load(batch, 1024) as engine:
        info = engine.device.info
        step = Step(engine, batch, trial.seed)
        direct = Direct(engine.device, step.batches, info.properties["cpu.isa"])
        try:
            step.outcome()
            step.run()
            wanted = step.outcome()
            direct.run()
            if step.outcome() != wanted:
                raise RuntimeError("the kernels gave other bits without the HAL")
            load_before = os.getloadavg()[0]
            ratio = interleave(
                rate(step.run, batch),
                rate(direct.run, batch),
                rounds=rounds,
                better="higher",
                seed=trial.seed,
            )
        finally:
            direct.close()
        record = trial.add(
            ratio.ours,
            ratio=ratio,
            rounds=rounds,
            peer_name="direct calls of the same kernels",
            peer_version=info.properties["cpu.isa"],
            name=f"step_batch_{batch}_tokens_per_second",
            unit="tokens/s",
            better="higher",
            reasons={"goal": f"the ratio's: {GOAL}"},
            quality={
                "same_bits": True,
                "ratio_goal": GOAL,
                "load_average_before": round(load_before, 2),
            },
            conditions={
                "model": "SmolLM2-135M-Instruct",
                "weights": engine.model.weight_format(),
                "batch": batch,
                "context_tokens": CONTEXT,
                "launches": len(direct),
                "threads": int(info.properties["cpu.threads"]),
                "isa": info.properties["cpu.isa"],
            },
        )
    interval = record.ratio_interval or (float("nan"), float("nan"))
    print(
        f"step of {batch}: {ratio.ours.p50:.1f} tokens/s, direct {ratio.peer.p50:.1f},"
        f" ratio {ratio.ratio:.4f} [{interval[0]:.4f}, {interval[1]:.4f}]",
        flush=True,
    )


def main() -> int:
    """Measure, print and store; 1 when a ratio misses its goal, 3 when NOT RUN."""
    trial = begin("hal", __doc__, programs=(LIBRARY,), seed=20261130, versions={"abi": ABI_VERSION})
    try:
        for batch in BATCHES:
            measure(trial, batch, trial.rounds(40, 4))
    except (NotLaunches, ServingError) as lacking:
        not_run(str(lacking))
    trial.finish()
    missed = [record.name for record in trial.records if (record.ratio or 0) < GOAL]
    print(f"ratio: goal {GOAL} {'MISSED by ' + ', '.join(missed) if missed else 'met'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
