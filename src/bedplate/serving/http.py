"""Pieces of HTTP that every application here needs: bodies, keys, errors, goodbyes.

The gateway uses them too, so that both answer alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from bedplate.core.errors import BedplateError
from bedplate.core.logging import get_logger
from bedplate.serving.errors import RequestRefused
from bedplate.serving.wire import error_body

LONGEST_BODY_BYTES = 4 << 20
# A full queue moves within a second; an engine that starts again needs a few.
_HEADERS = {
    401: {"WWW-Authenticate": "Bearer"},
    429: {"Retry-After": "1"},
    503: {"Retry-After": "2"},
}
_Result = TypeVar("_Result")

log = get_logger("serving")


def json_response(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON answer by msgspec."""
    return Response(msgspec.json.encode(body), status, headers, "application/json")


def response_headers(status: int) -> dict[str, str]:
    """What an error of `status` says beside its body."""
    return _HEADERS.get(status, {})


def error_response(error: BedplateError, status: int, param: str | None = None) -> Response:
    """OpenAI's error object for `error`; the remedy is part of the sentence."""
    body = error_body(str(error), status, error.condition, param)
    return json_response(body, status, response_headers(status))


class EventStream(StreamingResponse):
    """Server-sent events. `close` runs at the end, also when the client left before the first."""

    def __init__(
        self, events: AsyncIterator[bytes], status: int, close: Callable[[], Awaitable[object]]
    ) -> None:
        self._close = close
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(events, status, headers, "text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._close()


async def unless_gone(http: HttpRequest, work: Awaitable[_Result]) -> _Result:
    """The result of `work`, cancelled when the client closes the connection first.

    Raises `RequestRefused` then, though nobody reads the answer. The body must have
    been read.
    """
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(http))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise RequestRefused("the client closed the connection", status=499)
        return await task
    finally:
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _disconnected(http: HttpRequest) -> None:
    while (await http.receive())["type"] != "http.disconnect":
        pass


async def read_body(request: HttpRequest) -> bytes:
    """The body, refused beyond `LONGEST_BODY_BYTES` before it is read to its end."""
    try:
        return await _read_body(request)
    except ClientDisconnect as cause:  # nobody reads the answer, and no fault of ours
        raise RequestRefused("the client closed the connection", status=499) from cause


async def _read_body(request: HttpRequest) -> bytes:
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > LONGEST_BODY_BYTES:
            raise RequestRefused(
                f"the body is larger than {LONGEST_BODY_BYTES} bytes",
                code="serving.body_too_large",
                status=413,
            )
        chunks.append(chunk)
    return b"".join(chunks)


async def http_error(request: HttpRequest, error: Exception) -> Response:
    """No such route, or a method it does not take."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    text = "no such route" if status == 404 else "this method is not allowed here"
    condition = "not_found" if status == 404 else "method_not_allowed"
    return json_response(error_body(text, status, condition, None), status)


async def internal_error(request: HttpRequest, error: Exception) -> Response:
    """A fault of ours: logged with its traceback, answered without detail."""
    log.exception("request_failed", trace_id=request.state.trace.trace_id)
    return json_response(error_body("an internal error", 500, "internal", None), 500)
