"""From the engine's thread to an HTTP answer: collected, or as server-sent events.

A `Choices` runs the answers of one HTTP request and merges their outputs in the
order they come. Its buffer is bounded: a client that does not read has its
requests aborted, so that it cannot hold memory. Leaving the context aborts what
still runs, whatever the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Any, Protocol

from bedplate.serving.errors import AnswerLost
from bedplate.serving.request import FinishReason, Output, Request, Sink
from bedplate.serving.wire import Kind, sse, usage

MOST_BUFFERED = 4096  # outputs, a few hundred bytes each


class Submitter(Protocol):
    """The part of an engine that answering needs."""

    def submit(self, request: Request, sink: Sink) -> int:
        """Queue a request; see `EngineLoop.submit`."""

    def abort(self, identity: int) -> None:
        """End a request."""


class Choices:
    """The outputs of several requests, as one asynchronous sequence."""

    def __init__(self, engine: Submitter, requests: Sequence[Request]) -> None:
        self._engine = engine
        self._requests = requests
        self._queue: asyncio.Queue[tuple[int, Output]] = asyncio.Queue()
        self._running: dict[int, int] = {}
        self._overflowed = False

    async def __aenter__(self) -> Choices:
        loop = asyncio.get_running_loop()

        def sink_of(choice: int) -> Sink:
            def put(output: Output) -> None:
                loop.call_soon_threadsafe(self._put, choice, output)

            return put

        try:
            for choice, request in enumerate(self._requests):
                self._running[choice] = self._engine.submit(request, sink_of(choice))
        except BaseException:
            self._abort_all()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._abort_all()

    async def close(self) -> None:
        """Abort what still runs."""
        self._abort_all()

    def _abort_all(self) -> None:
        for identity in self._running.values():
            self._engine.abort(identity)
        self._running.clear()

    def _put(self, choice: int, output: Output) -> None:
        if self._queue.qsize() >= MOST_BUFFERED and output.finish_reason is None:
            self._overflowed = True
            self._abort_all()
            return
        self._queue.put_nowait((choice, output))

    async def __aiter__(self) -> AsyncIterator[tuple[int, Output]]:
        while self._running:
            choice, output = await self._queue.get()
            if self._overflowed:
                break
            if output.finish_reason is not None:
                self._running.pop(choice, None)
            if output.finish_reason is FinishReason.ERROR:
                raise output.failure()
            yield choice, output
        if self._overflowed:
            raise AnswerLost(
                f"the answer was not read: {MOST_BUFFERED} pieces waited for the client",
                remedy="read the stream as it comes",
            )


class Answer:
    """Builds the JSON of one HTTP answer of `kind` chat or text.

    `per_prompt` choices belong to one prompt, whose tokens count once.
    """

    def __init__(
        self, kind: Kind, identity: str, model: str, created_s: int, per_prompt: int
    ) -> None:
        self._kind: Kind = kind
        self._per_prompt = per_prompt
        self._prefix = "chatcmpl-" if kind == "chat" else "cmpl-"
        self._base = {"id": self._prefix + identity, "created": created_s, "model": model}
        self._totals: dict[int, Output] = {}

    async def collect(self, choices: Choices, count: int) -> dict[str, Any]:
        """The whole answer, once all `count` choices ended."""
        texts: dict[int, list[str]] = {i: [] for i in range(count)}
        async for choice, output in choices:
            texts[choice].append(output.text)
            self._totals[choice] = output
        entries = [self._whole(i, "".join(texts[i])) for i in range(count)]
        kind = "chat.completion" if self._kind == "chat" else "text_completion"
        return {**self._base, "object": kind, "choices": entries, "usage": self._usage()}

    def _whole(self, choice: int, text: str) -> dict[str, Any]:
        reason = self._totals[choice].finish_reason
        entry: dict[str, Any] = {"index": choice, "finish_reason": reason, "logprobs": None}
        if self._kind == "chat":
            return {**entry, "message": {"role": "assistant", "content": text, "refusal": None}}
        return {**entry, "text": text}

    async def events(
        self, choices: Choices, count: int, include_usage: bool
    ) -> AsyncIterator[bytes]:
        """Server-sent events: chunks, then usage when asked, then `[DONE]`."""
        if self._kind == "chat":
            for choice in range(count):
                yield self._event(self._delta(choice, {"role": "assistant", "content": ""}, None))
        async for choice, output in choices:
            self._totals[choice] = output
            if output.text:
                yield self._event(self._delta(choice, {"content": output.text}, None))
            if output.finish_reason is not None:
                yield self._event(self._delta(choice, {}, output.finish_reason))
        if include_usage:
            yield self._event([], self._usage())
        yield b"data: [DONE]\n\n"

    def _delta(
        self, choice: int, delta: dict[str, str], reason: FinishReason | None
    ) -> list[dict[str, Any]]:
        entry: dict[str, Any] = {"index": choice, "finish_reason": reason, "logprobs": None}
        if self._kind == "chat":
            return [{**entry, "delta": delta}]
        return [{**entry, "text": delta.get("content", "")}]

    def _event(self, choices: list[dict[str, Any]], usage: dict[str, Any] | None = None) -> bytes:
        kind = "chat.completion.chunk" if self._kind == "chat" else "text_completion"
        body = {**self._base, "object": kind, "choices": choices}
        if usage is not None:
            body["usage"] = usage
        return sse(body)

    def _usage(self) -> dict[str, Any]:
        firsts = [o for choice, o in self._totals.items() if choice % self._per_prompt == 0]
        return usage(
            sum(o.prompt_tokens for o in firsts),
            sum(o.completion_tokens for o in self._totals.values()),
            sum(o.cached_tokens for o in firsts),
        )
