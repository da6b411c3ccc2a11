"""Generation in process: prompts in, results out, without HTTP."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from queue import SimpleQueue

from bedplate.serving.engine import EngineLoop
from bedplate.serving.request import FinishReason, Output, Request
from bedplate.serving.sampling import Sampling


@dataclass(frozen=True)
class Result:
    """One finished generation. Counts in tokens."""

    text: str
    tokens: tuple[int, ...]
    finish_reason: FinishReason
    prompt_tokens: int
    cached_tokens: int


def stream(engine: EngineLoop, request: Request) -> Iterator[Output]:
    """The outputs of one request as they come; leaving early aborts it.

    Raises `EngineStopped` when the request ends by an error.
    """
    queue: SimpleQueue[Output] = SimpleQueue()
    identity = engine.submit(request, queue.put)
    ended = False
    try:
        while not ended:
            output = queue.get()
            ended = output.finish_reason is not None
            if output.finish_reason is FinishReason.ERROR:
                raise output.failure()
            yield output
    finally:
        if not ended:
            engine.abort(identity)


def generate(
    engine: EngineLoop, prompts: Iterable[str | Sequence[int]], sampling: Sampling | None = None
) -> list[Result]:
    """Run all prompts at once; results in their order.

    A prompt is text or token ids. Raises `RequestRefused` for one that cannot
    fit and `EngineStopped` when the engine ends first.
    """
    requests = [
        Request(
            engine.tokenizer.encode(p, begin=True) if isinstance(p, str) else list(p),
            sampling or Sampling(),
        )
        for p in prompts
    ]
    queue: SimpleQueue[Output] = SimpleQueue()
    order = {engine.submit(request, queue.put): i for i, request in enumerate(requests)}
    texts: list[list[str]] = [[] for _ in requests]
    tokens: list[list[int]] = [[] for _ in requests]
    results: dict[int, Result] = {}
    while len(results) < len(requests):
        output = queue.get()
        at = order[output.request]
        texts[at].append(output.text)
        tokens[at].extend(output.tokens)
        if output.finish_reason is FinishReason.ERROR:
            raise output.failure()
        if output.finish_reason is not None:
            results[at] = Result(
                "".join(texts[at]),
                tuple(tokens[at]),
                output.finish_reason,
                output.prompt_tokens,
                output.cached_tokens,
            )
    return [results[i] for i in range(len(requests))]
