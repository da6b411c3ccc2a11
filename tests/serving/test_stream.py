"""A client that asks and does not read: over a real socket whose buffers are small."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator

import httpx
import pytest
from tests.serving.running import KEY, MESSAGES, Running, chat, running

from bedplate.serving import stream
from bedplate.serving.api import Engine

PATIENCE_S = 30.0  # ends a test that would hang
SMALL_BYTES = 4096


@pytest.fixture
def server(tiny: Engine) -> Iterator[Running]:
    """The tiny model behind a socket that keeps little of what is not read."""
    with running(tiny, SMALL_BYTES) as found:
        yield found


def ask(server: Running, body: dict[str, object]) -> socket.socket:
    """Send a request, and let little of its answer in before it is read."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BYTES)
    client.settimeout(PATIENCE_S)
    url = httpx.URL(server.url)
    client.connect((url.host, url.port))
    content = json.dumps({"model": "tiny", "messages": MESSAGES, **body}).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n"
        f"Connection: close\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    client.sendall(head.encode() + content)
    return client


def events(client: socket.socket) -> list[str]:
    """All events, read now."""
    text = b""
    while data := client.recv(65536):
        text += data
    return [line for line in text.decode().splitlines() if line.startswith("data: ")]


def test_a_client_that_does_not_read_is_dropped_and_told(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its requests are aborted while it sleeps, so it holds neither memory nor a place; others are
    served meanwhile; when it reads at last, its stream ends with the error and `[DONE]`."""
    monkeypatch.setattr(stream, "MOST_BUFFERED", 64)
    asked = {"stream": True, "n": 64, "max_tokens": 100, "ignore_eos": True}
    with ask(server, asked) as client:
        until = time.monotonic() + PATIENCE_S
        while server.engine.stats().added < 64 or busy(server):
            assert time.monotonic() < until, "its requests go on though nobody reads"
            time.sleep(0.01)
        stats = server.engine.stats()
        assert stats.blocks_clean + stats.blocks_cached == server.engine.limits.block_count
        assert chat(server).usage.completion_tokens > 0
        *pieces, error, done = events(client)
    assert done == "data: [DONE]"
    told = json.loads(error.removeprefix("data: "))["error"]
    assert told["code"] == "answer_lost"
    assert told["message"].startswith("the answer was not read: 64 pieces waited for the client")
    assert len(pieces) < 64 * 100


def busy(server: Running) -> int:
    """Requests that the engine still has."""
    stats = server.engine.stats()
    return stats.running + stats.waiting
