"""The gate `steady_state`: a real engine serves, and nobody calls the driver.

The HAL's counting driver and the pools watch a window of steps with random prompts on
the packaged model. One call that makes memory, a queue, a timeline, a module or a graph,
gives one back or waits for all of a queue is a failure, from Python or native code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bedplate.core.errors import BedplateError
from bedplate.core.gates import Finding, GateResult, GateVerdict
from bedplate.hal.api import Device, Queue, counted
from bedplate.serving.load import Engine, EngineOptions
from bedplate.serving.packaged import DEFAULT_MODEL
from bedplate.serving.sampling import Sampling


@contextmanager
def driver_calls(device: Device) -> Iterator[Counter[str]]:
    """What asks the driver for something, gives it back, or waits for all of a queue.

    One at a time in a process, as `counted`.
    """
    kind: Any = Queue
    true = kind.synchronize
    with counted(device) as seen:

        def synchronize(queue: Queue, *words: Any, **more: Any) -> None:
            seen["queue.synchronize"] += 1
            true(queue, *words, **more)

        kind.synchronize = synchronize
        try:
            yield seen
        finally:
            kind.synchronize = true


def steady(engine: Engine, steps: int, seed: int = 7) -> Counter[str]:
    """The driver's calls in a window of at least `steps` steps, pools included."""
    draw = np.random.default_rng(seed)
    first, before = engine.stats().steps, engine.pools.driver_calls_since_seal()
    sampling = Sampling(temperature=0, max_tokens=60, ignore_eos=True)
    with driver_calls(engine.device) as seen:
        while engine.stats().steps < first + steps:
            lengths = draw.integers(1, 60, draw.integers(1, 9))
            prompts = [[int(i) for i in draw.integers(3, 90, length)] for length in lengths]
            engine.generate(prompts, sampling)
    seen["pool"] += engine.pools.driver_calls_since_seal() - before
    return +seen


class SteadyState:
    """See the module. `steps` is the window."""

    name = "steady_state"
    incident = "a service that stalls or runs out of memory after days of the same load"

    def __init__(self, model: str = DEFAULT_MODEL, steps: int = 200) -> None:
        self._model, self._steps = model, steps

    def check(self, tree: Path) -> GateResult:
        """NOT RUN for a tree that is not ours, and without the model."""
        here = Path(__file__).resolve()
        if not here.is_relative_to(tree.resolve()):
            return GateResult(
                self.name,
                GateVerdict.NOT_RUN,
                f"the engine that runs is not the one in {tree}; name the gates that "
                "are for it with --gate",
            )
        options = EngineOptions(max_model_tokens=128, max_running=8, max_batched_tokens=64)
        try:
            with Engine(self._model, options) as engine:
                calls = steady(engine, self._steps)
        except BedplateError as error:
            return GateResult(self.name, GateVerdict.NOT_RUN, str(error))
        if calls:
            what = ", ".join(f"{count} {call}" for call, count in sorted(calls.items()))
            found = Finding(
                here.relative_to(tree.resolve()).as_posix(),
                None,
                f"{what} in {self._steps} steps",
                "take the memory from a pool before the first step; wait for a timeline's value",
            )
            return GateResult(self.name, GateVerdict.FAILED, what, (found,))
        return GateResult(self.name, GateVerdict.PASSED)
