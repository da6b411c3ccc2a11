"""Relaying one request to the engine and its answer back, streamed or whole.

The body goes through as it came, events one whole event at a time. When the engine
dies in the middle, a stream ends with an error event, a whole answer becomes 503;
the gateway itself goes on. Leaving early closes the upstream connection, which
makes the engine abort.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx

from bedplate.core.logging import get_logger
from bedplate.core.trace import TraceContext
from bedplate.serving.api import TENANT_HEADER, EngineStopped, error_event

# Connecting is local; between two chunks may lie a whole prompt of others.
_TIMEOUT = httpx.Timeout(None, connect=5.0)
# The engine bounds its queue and says so with 429; a second bound here would hide that.
# Nothing is kept alive: a connection of a Unix socket costs little, and none is ever stale.
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=0)
_END = b"\n\n"
_LAST_EVENT = b"data: [DONE]"

log = get_logger("gateway")


class EngineUnavailable(EngineStopped):
    """No engine answers now; the supervisor is starting one. HTTP 503."""

    code = "gateway.engine_unavailable"


class Upstream:
    """The engine behind a Unix socket."""

    def __init__(self, socket: Path, internal_key: str) -> None:
        self._client = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=str(socket), limits=_LIMITS),
            timeout=_TIMEOUT,
            headers={"Authorization": f"Bearer {internal_key}"},
            base_url="http://localhost",
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def get(self, path: str, *, timeout_s: float = 2.0) -> httpx.Response:
        """A short answer of the engine. Raises `EngineUnavailable`."""
        try:
            return await self._client.get(path, timeout=timeout_s)
        except httpx.HTTPError as cause:
            raise _unavailable(cause) from cause

    async def post(
        self, path: str, body: bytes, tenant: str, trace: TraceContext
    ) -> httpx.Response:
        """The engine's answer with its body unread; close it. Raises `EngineUnavailable`."""
        request = self._client.build_request(
            "POST",
            path,
            content=body,
            headers={
                "Content-Type": "application/json",
                "traceparent": trace.child().header(),
                TENANT_HEADER: tenant,
            },
        )
        try:
            return await self._client.send(request, stream=True)
        except httpx.HTTPError as cause:
            raise _unavailable(cause) from cause


def _unavailable(cause: Exception) -> EngineUnavailable:
    return EngineUnavailable(
        "the engine does not answer; it is being started",
        remedy="try again in a few seconds",
        detail=f"{type(cause).__name__}: {cause}",
    )


async def whole(answer: httpx.Response) -> bytes:
    """The body. Raises `EngineUnavailable` when the engine dies before its end."""
    try:
        return await answer.aread()
    except httpx.HTTPError as cause:
        raise _unavailable(cause) from cause
    finally:
        await answer.aclose()


async def events(answer: httpx.Response) -> AsyncIterator[bytes]:
    """Whole events as they come; an error event when the engine dies before `[DONE]`.

    A part of an event that the engine could not finish is dropped.
    """
    rest, ended = b"", False
    try:
        async for chunk in answer.aiter_raw():
            complete, end, rest = (rest + chunk).rpartition(_END)
            if end:
                ended = complete.endswith(_LAST_EVENT)
                yield complete + end
    except httpx.HTTPError as cause:
        log.warning("stream_lost", cause=type(cause).__name__)
    finally:
        await answer.aclose()
    if not ended:
        yield error_event("the engine ended before the answer did", "engine_lost")
