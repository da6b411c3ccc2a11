"""The relay against engines that break off at every place, over a real Unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import httpx
import pytest

from bedplate.core.trace import TraceContext
from bedplate.orchestrator.gateway.relay import (
    EngineUnavailable,
    Upstream,
    events,
    whole,
)
from bedplate.serving.api import EventStream

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
ONE, TWO, DONE = b'data: {"a":1}\n\n', b'data: {"b":2}\n\n', b"data: [DONE]\n\n"


def chunk(data: bytes) -> bytes:
    """One piece of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def saying(*pieces: bytes) -> Serve:
    """An engine that answers with raw bytes, a write for each, and then closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)

    return serve


@contextlib.asynccontextmanager
async def engine(folder: Path, serve: Serve) -> AsyncIterator[Upstream]:
    """A server at a Unix socket that handles each connection with `serve`, and its upstream."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_unix_server(handle, folder / "s")
    upstream = Upstream(folder / "s", "internal")
    try:
        yield upstream
    finally:
        await upstream.close()
        server.close()
        await server.wait_closed()


async def post(upstream: Upstream) -> httpx.Response:
    """Some request."""
    return await upstream.post("/v1/completions", b"{}", "key:a", TraceContext.start())


def relayed(folder: Path, *pieces: bytes) -> list[bytes]:
    """The events that come out when the engine says `pieces`."""

    async def run() -> bytes:
        async with engine(folder, saying(HEAD, *pieces)) as upstream:
            return b"".join([event async for event in events(await post(upstream))])

    return [event + b"\n\n" for event in asyncio.run(run()).split(b"\n\n")[:-1]]


def error_code(event: bytes) -> str:
    """The code of an error event."""
    code: str = json.loads(event.removeprefix(b"data: "))["error"]["code"]
    return code


def test_a_sound_stream_goes_through_as_it_is(tmp_path: Path) -> None:
    """However it is cut into pieces, `[DONE]` included, there is no error event."""
    body = ONE + TWO + DONE
    for cut in (0, 3, len(ONE), len(body) - 4, len(body) - 1):
        pieces = [chunk(part) for part in (body[:cut], body[cut:]) if part]
        folder = tmp_path / str(cut)
        folder.mkdir()
        assert relayed(folder, *pieces, b"0\r\n\r\n") == [ONE, TWO, DONE]


@pytest.mark.parametrize("kept", range(len(TWO)))
def test_a_dying_engine_leaves_whole_events_and_an_error(tmp_path: Path, kept: int) -> None:
    """Cut inside the second event, anywhere: the first, the error, `[DONE]`, no half line."""
    first, error, done = relayed(tmp_path, chunk(ONE), b"%x\r\n" % len(TWO) + TWO[:kept])
    assert (first, done) == (ONE, DONE)
    assert error_code(error) == "engine_lost"


def test_an_engine_that_ends_without_done_is_lost(tmp_path: Path) -> None:
    """The end of the body alone is not the end of the answer."""
    first, error, done = relayed(tmp_path, chunk(ONE), b"0\r\n\r\n")
    assert (first, error_code(error), done) == (ONE, "engine_lost", DONE)


def test_a_whole_answer_that_breaks_off_is_503(tmp_path: Path) -> None:
    """Half a body is no answer."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"

    async def run() -> None:
        async with engine(tmp_path, saying(head, b"half")) as upstream:
            with pytest.raises(EngineUnavailable, match="being started"):
                await whole(await post(upstream))

    asyncio.run(run())


@pytest.mark.parametrize("served", [False, True])
def test_no_engine_and_one_that_hangs_up_are_unavailable(tmp_path: Path, served: bool) -> None:
    """No socket, or a connection closed without an answer."""

    async def run() -> None:
        async with contextlib.AsyncExitStack() as stack:
            upstream = Upstream(tmp_path / "none", "internal")
            if served:
                upstream = await stack.enter_async_context(engine(tmp_path, saying()))
            with pytest.raises(EngineUnavailable):
                await post(upstream)
            with pytest.raises(EngineUnavailable):
                await upstream.get("/health")
            await upstream.close()

    asyncio.run(run())


@pytest.mark.parametrize("begun", [False, True])
def test_leaving_closes_the_connection_to_the_engine(tmp_path: Path, begun: bool) -> None:
    """In the middle of the events, and before the first: the engine sees it and can abort."""

    async def run() -> None:
        closed = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n{}")
            writer.write(HEAD + chunk(ONE))
            assert await reader.read() == b""
            closed.set()

        async def gone(message: object) -> None:
            if not begun or message["type"] == "http.response.body":  # type: ignore[index]
                raise OSError("the client is gone")

        async def receive() -> dict[str, str]:
            await asyncio.sleep(3600)
            return {"type": "http.disconnect"}

        async with engine(tmp_path, serve) as upstream:
            answer = await post(upstream)
            response = EventStream(events(answer), answer.status_code, answer.aclose)
            scope = {"type": "http", "asgi": {"spec_version": "2.4"}}
            with contextlib.suppress(Exception):
                await response(scope, receive, gone)
            await asyncio.wait_for(closed.wait(), 20)

    asyncio.run(run())


def test_many_streams_do_not_hold_up_a_short_question(tmp_path: Path) -> None:
    """More streams than a client library's usual bound on connections; `/health` still answers."""

    async def run() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"GET"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                return
            writer.write(HEAD + chunk(ONE))
            await reader.read()

        async with engine(tmp_path, serve) as upstream:
            streams = [await post(upstream) for _ in range(150)]
            assert (await upstream.get("/health")).json() == {}
            for stream in streams:
                await stream.aclose()

    asyncio.run(run())


def test_the_engine_is_told_tenant_trace_and_internal_key_only(tmp_path: Path) -> None:
    """The client's own key goes no further than the gateway."""
    seen = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.extend(await reader.readuntil(b"\r\n\r\n"))

    async def run() -> TraceContext:
        trace = TraceContext.start()
        async with engine(tmp_path, serve) as upstream:
            with pytest.raises(EngineUnavailable):
                await upstream.post("/v1/completions", b"{}", "key:a", trace)
        return trace

    trace = asyncio.run(run())
    head = bytes(seen).decode().lower()
    assert "authorization: bearer internal" in head
    assert "x-bedplate-tenant: key:a" in head
    assert f"traceparent: 00-{trace.trace_id}-" in head
