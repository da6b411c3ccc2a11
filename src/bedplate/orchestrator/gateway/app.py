"""The gateway's routes. Every one needs a key except `/health` and `/ready`.

`/health` is the gateway's own life, with what it knows of the engine beside it;
`/ready` says whether a request would be answered now. Models and refusals need no
engine, so they are the same while one starts again.
"""

from __future__ import annotations

import time
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from bedplate.core.metrics import CONTENT_TYPE
from bedplate.orchestrator.gateway.envelope import read_envelope, unknown_model
from bedplate.orchestrator.gateway.relay import EngineUnavailable, Upstream, events, whole
from bedplate.serving.api import (
    Access,
    EventStream,
    json_response,
    model_card,
    read_body,
    unless_gone,
)

# The supervisor takes a gateway that is slow to answer for a hung one, so a hung
# engine must not hold `/health` up.
_GLANCE_S = 0.3


class Gateway:
    """Routes of the gateway in front of one engine that serves `model`."""

    def __init__(self, upstream: Upstream, access: Access, model: str) -> None:
        self._upstream, self._access, self._model = upstream, access, model
        self._created_s = int(time.time())

    def build(self) -> Starlette:
        """The ASGI application."""

        table = (
            ("GET", "/health", self._health),
            ("GET", "/ready", self._ready),
            ("GET", "/metrics", self._metrics),
            ("GET", "/v1/models", self._models),
            ("GET", "/v1/models/{model:path}", self._one_model),
            ("POST", "/v1/chat/completions", self._relay),
            ("POST", "/v1/completions", self._relay),
        )
        return self._access.application(table, self._upstream.close)

    async def _engine_state(self, timeout_s: float) -> tuple[str, str]:
        try:
            body = (await self._upstream.get("/health", timeout_s=timeout_s)).json()
            return str(body["state"]), str(body["reason"])
        except (EngineUnavailable, ValueError, KeyError, TypeError):
            return "unreachable", "the engine does not answer"

    async def _health(self, request: Request) -> Response:
        state, reason = await self._engine_state(_GLANCE_S)
        body = {"state": "ready", "reason": "", "engine": {"state": state, "reason": reason}}
        return json_response(body)

    async def _ready(self, request: Request) -> Response:
        state, _ = await self._engine_state(2.0)
        ready = state == "ready"
        return json_response({"ready": ready, "engine": state}, 200 if ready else 503)

    async def _metrics(self, request: Request) -> Response:
        answer = await self._upstream.get("/metrics")
        return Response(answer.content, answer.status_code, media_type=CONTENT_TYPE)

    def _card(self) -> dict[str, Any]:
        return model_card(self._model, self._created_s)

    async def _models(self, request: Request) -> Response:
        return json_response({"object": "list", "data": [self._card()]})

    async def _one_model(self, request: Request) -> Response:
        asked = request.path_params["model"]
        if asked != self._model:
            raise unknown_model(asked, self._model)
        return json_response(self._card())

    async def _relay(self, request: Request) -> Response:
        body = await read_body(request)
        read_envelope(body, self._model)
        tenant, trace = request.state.caller, request.state.trace
        upstream = self._upstream.post(request.url.path, body, tenant, trace)
        answer = await unless_gone(request, upstream)
        kind = answer.headers.get("content-type", "application/json")
        if kind.startswith("text/event-stream"):
            return EventStream(events(answer), answer.status_code, answer.aclose)
        content = await unless_gone(request, whole(answer))
        kept = {k: v for k, v in answer.headers.items() if k.lower() == "retry-after"}
        return Response(content, answer.status_code, kept, kind)
