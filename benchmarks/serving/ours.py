"""Our engine's side of the comparison: whole steps, scheduler and sampling included."""

from __future__ import annotations

import time
from queue import SimpleQueue

import numpy as np

from bedplate.serving.api import Engine, EngineOptions, Output, Request, Sampling

FIRST_ID = 20  # past the control tokens


def load(batch: int, tokens: int) -> Engine:
    """The default model, as `bedplate serve` would run it; no prefix is ever found again."""
    options = EngineOptions(max_model_tokens=tokens, max_running=batch, prefix_sharing=False)
    return Engine("smollm2", options)


def _prompt(engine: Engine, rng: np.random.Generator, length: int) -> list[int]:
    ids: list[int] = rng.integers(FIRST_ID, engine.tokenizer.size, length).tolist()
    return ids


def decode(engine: Engine, *, batch: int, context: int, steps: int, seed: int) -> float:
    """Tokens a second of `batch` requests while all of them decode, from `context` tokens on."""
    rng = np.random.default_rng(seed)
    outputs: SimpleQueue[tuple[int, Output]] = SimpleQueue()

    def sink(output: Output) -> None:
        outputs.put((time.perf_counter_ns(), output))

    # The last request to be read starts last: longer answers keep the others running till then.
    spare = 2 + batch * context // engine.limits.max_batched_tokens
    sampling = Sampling(temperature=0, max_tokens=steps + spare, ignore_eos=True)
    for _ in range(batch):
        engine.submit(Request(_prompt(engine, rng, context), sampling), sink)
    times: dict[int, list[int]] = {}
    ended = 0
    while ended < batch:
        at_ns, output = outputs.get()
        if output.tokens:
            times.setdefault(output.request, []).append(at_ns)
        ended += output.finish_reason is not None
    start = max(t[0] for t in times.values())
    end = min(t[-1] for t in times.values())
    count = sum(sum(start < at <= end for at in t) for t in times.values())
    return count * 1e9 / (end - start)


def prefill(engine: Engine, *, tokens: int, seed: int) -> float:
    """Prompt tokens a second, from submission to the first sampled token."""
    prompt = _prompt(engine, np.random.default_rng(seed), tokens)
    done: SimpleQueue[Output] = SimpleQueue()
    start = time.perf_counter_ns()
    engine.submit(Request(prompt, Sampling(temperature=0, max_tokens=1)), done.put)
    done.get()
    return tokens * 1e9 / (time.perf_counter_ns() - start)
