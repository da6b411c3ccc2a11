"""One HTTP connection: how long it may take to ask, and what happens when there are too many.

A client has `HEADER_S` from the connection, or from the end of the answer before, to a
whole header, and `BODY_S` from there to the end of the body. Nothing ends an answer
that is being made; the last of it must be taken within `HEADER_S` and `BODY_S`.
When there are too many connections, the one that has waited longest for its client
goes; when all of them are being answered, a new one may ask for health alone, and
beyond a reserve for that it is refused. So clients without a key cannot keep others
out, and the supervisor always gets its answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Any

import h11
import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from bedplate.core.trace import TraceContext
from bedplate.serving.access import OPEN_ROUTES
from bedplate.serving.http import response_headers
from bedplate.serving.wire import error_body

HEADER_S = 10.0
BODY_S = 60.0  # 4 MiB at a slow 0.6 Mbit/s
RESERVE = 4  # connections for health alone; a platform asks for it with one at a time
_PHRASES = {400: "Bad Request", 408: "Request Timeout", 503: "Service Unavailable"}


class Crowd:
    """The connections of one server that wait for their clients, the longest first."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.waiting: dict[Connection, None] = {}

    def longest_waiting(self) -> Connection | None:
        """The one to go first; not one whose answer is still on its way."""
        for connection in self.waiting:
            if not connection.transport.get_write_buffer_size():
                return connection
        return None


class Connection(H11Protocol):
    """uvicorn's protocol with deadlines; `limited` binds it to a crowd."""

    crowd: Crowd
    _deadline: asyncio.TimerHandle | None = None
    _phase: Hashable = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room for it, or refuse it."""
        super().connection_made(transport)
        if len(self.connections) > self.crowd.most:
            longest = self.crowd.longest_waiting()
            if longest is not None:
                self.crowd.waiting.pop(longest)
                longest.give_up(503, "too many connections are open", "too_many_connections")
                longest.transport.abort()
            elif len(self.connections) > self.crowd.most + RESERVE:
                self.give_up(503, "too many connections are open", "too_many_connections")
                return
            else:
                self.app = _health_alone(self.app)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._expect(None, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes of the client."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        self._look()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, in the form of every other error."""
        self.give_up(400, "this is not a request of HTTP/1.1", "bad_request")

    def give_up(self, status: int, text: str, condition: str) -> None:
        """Answer with an error where an answer is due and none has begun, and close."""
        if self._is_owed() and not self.transport.is_closing():
            self.transport.write(_whole_answer(status, text, condition))
        self.transport.close()

    def _is_owed(self) -> bool:
        cycle = self.cycle
        if cycle is None or self.conn.their_state is h11.ERROR:
            return cycle is None or cycle.response_complete or not cycle.response_started
        if self._waits_for_header():
            return bool(self.conn.trailing_data[0])  # else it idles after its last answer
        return not cycle.response_started

    def _waits_for_header(self) -> bool:
        return self.conn.their_state in (h11.IDLE, h11.ERROR)

    def _look(self) -> None:
        """What is expected of the client now, and until when."""
        if self._waits_for_header():
            self._expect(("header", self.cycle), HEADER_S)
        elif self.conn.their_state is h11.SEND_BODY:
            self._expect(("body", self.cycle), BODY_S)
        elif self.transport.is_closing():
            self._expect(("answer", self.cycle), BODY_S)  # to take the last of it
        else:
            self._expect(None, None)

    def _expect(self, phase: Hashable, seconds: float | None) -> None:
        if phase is not None and phase == self._phase:
            self._settle()
            return
        self._phase = phase
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self.crowd.waiting.pop(self, None)
        if seconds is not None:
            self._deadline = self.loop.call_later(seconds, self._too_late)
            self._settle()

    def _settle(self) -> None:
        """Keep a place among those that may go: all but those whose body is being read."""
        if self._waits_for_header() or self.cycle.response_complete:
            self.crowd.waiting.setdefault(self)

    def _too_late(self) -> None:
        if self.transport.is_closing():
            self.transport.abort()  # it does not take its last answer
            return
        self._deadline = self.loop.call_later(BODY_S, self.transport.abort)
        if self.transport.get_write_buffer_size():
            self.transport.close()  # after what is still to be sent
        else:
            self.give_up(408, "the request did not arrive in time", "request_timeout")


def limited(most: int) -> type[Connection]:
    """The protocol of one server with at most `most` connections, and `RESERVE` for health."""

    class Limited(Connection):
        crowd = Crowd(most)

    return Limited


def _health_alone(application: Any) -> ASGIApp:
    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in OPEN_ROUTES:
            body, headers = _error(503, "too many connections are open", "too_many_connections")
            raw = [(k.lower().encode(), v.encode()) for k, v in headers.items()]
            await send({"type": "http.response.start", "status": 503, "headers": raw})
            await send({"type": "http.response.body", "body": body})
            return
        await application(scope, receive, send)

    return guarded


def _error(status: int, text: str, condition: str) -> tuple[bytes, dict[str, str]]:
    body = msgspec.json.encode(error_body(text, status, condition, None))
    return body, {
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Connection": "close",
        "X-Request-Id": TraceContext.start().trace_id,
        **response_headers(status),
    }


def _whole_answer(status: int, text: str, condition: str) -> bytes:
    body, headers = _error(status, text, condition)
    lines = [f"HTTP/1.1 {status} {_PHRASES[status]}", *(f"{k}: {v}" for k, v in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
