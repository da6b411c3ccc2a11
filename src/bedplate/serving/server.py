"""The OpenAI-compatible HTTP application over one engine.

`access` guards every route. The caller's identity, not the body, decides with whom
a request shares prefixes.
"""

from __future__ import annotations

import asyncio
import hashlib
import struct
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from bedplate.core.health import Health, HealthState
from bedplate.core.metrics import CONTENT_TYPE
from bedplate.serving import wire
from bedplate.serving.access import Access
from bedplate.serving.encoding import EncodingPool, check_bytes
from bedplate.serving.errors import AnswerLost, EngineStopped, RequestRefused
from bedplate.serving.http import (
    EventStream,
    json_response,
    read_body,
    unless_gone,
)
from bedplate.serving.request import Request
from bedplate.serving.scheduler import Limits
from bedplate.serving.stream import Answer, Choices, Submitter
from bedplate.serving.template import ChatTemplate
from bedplate.serving.tokenizer import Tokenizer

_Ids = TypeVar("_Ids")


class Served(Submitter, Protocol):
    """What the application needs of an engine."""

    tokenizer: Tokenizer
    template: ChatTemplate | None
    name: str
    limits: Limits

    def health(self) -> Health:
        """Whether steps progress."""

    def refused(self, *, shed: bool) -> None:
        """Count a request that was refused before it came to `submit`."""


class Application:
    """Routes of one engine. `build` makes the ASGI application."""

    def __init__(
        self,
        engine: Served,
        access: Access,
        metrics_text: Callable[[], str],
    ) -> None:
        self._engine = engine
        self._access = access
        self._metrics_text = metrics_text
        self._created_s = int(time.time())
        self._encoding = EncodingPool()

    def build(self, on_stop: Callable[[], None] | None = None) -> Starlette:
        """The ASGI application; `on_stop` runs when the server has drained."""

        async def stop() -> None:
            self._encoding.close()
            if on_stop is not None:
                await asyncio.to_thread(on_stop)

        table = (
            ("GET", "/health", self._health),
            ("GET", "/ready", self._ready),
            ("GET", "/metrics", self._metrics),
            ("GET", "/v1/models", self._models),
            ("GET", "/v1/models/{model:path}", self._model),
            ("POST", "/v1/chat/completions", self._chat),
            ("POST", "/v1/completions", self._complete),
        )
        return self._access.application(table, stop)

    async def _health(self, request: HttpRequest) -> Response:
        health = self._engine.health()
        body = {
            "state": health.state.value,
            "reason": health.reason,
            "last_progress_ns": health.last_progress_ns,
        }
        return json_response(body, 200 if health.state.healthy else 503)

    async def _ready(self, request: HttpRequest) -> Response:
        ready = self._engine.health().state is HealthState.READY
        return json_response({"ready": ready}, 200 if ready else 503)

    async def _metrics(self, request: HttpRequest) -> Response:
        return Response(self._metrics_text(), media_type=CONTENT_TYPE)

    def _card(self) -> dict[str, Any]:
        return wire.model_card(self._engine.name, self._created_s)

    async def _models(self, request: HttpRequest) -> Response:
        return json_response({"object": "list", "data": [self._card()]})

    async def _model(self, request: HttpRequest) -> Response:
        self._check_model(request.path_params["model"])
        return json_response(self._card())

    def _check_model(self, name: str) -> None:
        if name != self._engine.name:
            raise RequestRefused(
                f"the model {name!r} is not served here; {self._engine.name!r} is",
                code="serving.model_not_found",
                param="model",
                status=404,
            )

    async def _chat(self, request: HttpRequest) -> Response:
        body = wire.decode(await read_body(request), wire.ChatBody)
        self._check_model(body.model)
        messages = wire.messages_of(body)
        template = self._engine.template
        if template is None:
            raise RequestRefused(
                f"the model {self._engine.name!r} has no chat template",
                code="serving.no_chat_template",
                remedy="use /v1/completions",
            )

        def encode() -> list[int]:
            return self._engine.tokenizer.encode(template.render(messages))

        ids = await self._encode(request, [[m["content"] for m in messages]], encode)
        return await self._answer(request, "chat", body, [ids])

    async def _complete(self, request: HttpRequest) -> Response:
        body = wire.decode(await read_body(request), wire.CompletionBody)
        self._check_model(body.model)
        prompts = wire.prompts_of(body)
        if len(prompts) * (body.n or 1) > wire.MOST_CHOICES:
            raise RequestRefused(
                f"{len(prompts)} prompts times n are more than {wire.MOST_CHOICES} answers",
                param="prompt",
            )

        texts = [prompt for prompt in prompts if isinstance(prompt, str)]

        def encode() -> list[list[int]]:
            return [self._engine.tokenizer.encode(text, begin=True) for text in texts]

        # Prompts are all of one kind, and ids need no work.
        each = [[text] for text in texts]
        ids = await self._encode(request, each, encode) if texts else _ids(prompts)
        return await self._answer(request, "text", body, ids)

    async def _encode(
        self, http: HttpRequest, prompts: Iterable[Iterable[str]], work: Callable[[], _Ids]
    ) -> _Ids:
        """What `work` makes of prompts, each of some texts, if they may be read at all."""
        longest = self._engine.tokenizer.longest_token_bytes
        context = self._engine.limits.max_model_tokens
        try:
            size = sum(check_bytes(texts, context, longest) for texts in prompts)
            return await self._encoding.run(http.state.caller, size, work)
        except RequestRefused as refusal:
            self._engine.refused(shed=refusal.status == 429)
            raise

    async def _answer(
        self, http: HttpRequest, kind: wire.Kind, body: wire.Common, prompts: Sequence[list[int]]
    ) -> Response:
        per_prompt = body.n or 1
        domain = _domain(http.state.caller, body.cache_salt)
        requests = [
            Request(
                ids,
                wire.sampling_of(body, i),
                body.priority or 0,
                domain,
                http.state.trace.trace_id,
                http.state.caller,
            )
            for ids in prompts
            for i in range(per_prompt)
        ]
        trace: str = http.state.trace.trace_id
        answer = Answer(kind, trace, self._engine.name, int(time.time()), per_prompt)
        choices = Choices(self._engine, requests)
        if not body.stream:
            async with choices:
                return json_response(
                    await unless_gone(http, answer.collect(choices, len(requests)))
                )
        include_usage = bool(body.stream_options and body.stream_options.include_usage)
        await choices.__aenter__()  # refusals must come before the status line
        events = _ending_well(answer.events(choices, len(requests), include_usage))
        return EventStream(events, 200, choices.close)


async def _ending_well(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """`events`, ending in an error event when the answer or the engine is lost."""
    try:
        async for event in events:
            yield event
    except (EngineStopped, AnswerLost) as error:
        yield wire.error_event(str(error), error.condition)


def _ids(prompts: Sequence[str | list[int]]) -> list[list[int]]:
    return [prompt for prompt in prompts if isinstance(prompt, list)]


def _domain(caller: str, salt: str | None) -> tuple[int, int]:
    """128 bits that separate prefixes: the caller, narrowed by the body's salt."""
    material = msgspec.json.encode([caller, salt])
    first, second = struct.unpack("<QQ", hashlib.sha256(material).digest()[:16])
    return first, second
