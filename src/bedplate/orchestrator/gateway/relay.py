"""Relaying one request to the engine and its answer back, streamed or whole.

The body goes through as it came. When the engine dies in the middle, a stream
ends with an error event, a whole answer becomes 503; the gateway itself goes on.
Leaving early closes the upstream connection, which makes the engine abort.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx

from bedplate.core.errors import BedplateError
from bedplate.core.logging import get_logger
from bedplate.core.trace import TraceContext
from bedplate.serving.api import TENANT_HEADER, error_event

# Connecting is local; between two chunks may lie a whole prompt of others.
_TIMEOUT = httpx.Timeout(None, connect=5.0)

log = get_logger("gateway")


class EngineUnavailable(BedplateError):
    """No engine answers now; the supervisor is starting one."""

    code = "gateway.engine_unavailable"


class Upstream:
    """The engine behind a Unix socket."""

    def __init__(self, socket: Path, internal_key: str) -> None:
        self._client = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=str(socket)),
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
    """The body as it comes; an error event when the engine dies before its end."""
    ended = False
    try:
        async for chunk in answer.aiter_raw():
            ended = chunk.rstrip().endswith(b"data: [DONE]")
            yield chunk
        if not ended:
            yield error_event("the engine ended before the answer did", "engine_lost")
    except httpx.HTTPError as cause:
        log.warning("stream_lost", cause=type(cause).__name__)
        yield error_event("the engine ended before the answer did", "engine_lost")
    finally:
        await answer.aclose()
