"""Clients that take their time, and many of them: the others are answered all the same."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from tests.serving.test_process import process

from bedplate.core import keys
from bedplate.serving import connection
from bedplate.serving.access import Access
from bedplate.serving.http import read_body
from bedplate.serving.process import Address, connections_that_fit, raise_file_limit

SLOW = b"GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: "
KEY = keys.make()
Port = int
in_work: list[int] = []  # one entry for each request of /wait that the server has begun

CROWDED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 512))
from starlette.responses import PlainTextResponse
from bedplate.core import keys
from bedplate.serving.access import Access
from bedplate.serving.process import Address, answer_until_stopped

async def health(request):
    return PlainTextResponse("well")

application = Access(keys.KeyRing({})).application([("GET", "/health", health)])
address = Address(port=0)
listener = address.bind()
ready = lambda: print(listener.getsockname()[1], flush=True)
print("starting", flush=True)
sys.exit(answer_until_stopped(application, listener, on_ready=ready))
"""


def test_a_thousand_unfinished_headers_leave_health_answering() -> None:
    """More than twice as many as the process may open files; all come from one address."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with contextlib.ExitStack() as undo:
        undo.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        child = undo.enter_context(process(CROWDED))
        assert child.stdout is not None
        port = int(child.stdout.readline())
        for _ in range(1100):
            one = undo.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
            with contextlib.suppress(OSError):  # closed already, to make room
                one.sendall(SLOW)
        for _ in range(3):
            assert httpx.get(f"http://127.0.0.1:{port}/health", timeout=10).text == "well"


@contextlib.contextmanager
def served(most: int) -> Iterator[Port]:
    """A server in this process with room for `most` connections."""
    released = threading.Event()

    async def health(request: Request) -> Response:
        return PlainTextResponse("well")

    async def echo(request: Request) -> Response:
        return Response(await read_body(request))

    in_work.clear()

    async def wait(request: Request) -> Response:
        in_work.append(1)
        while not released.is_set():
            await asyncio.sleep(0.01)
        return PlainTextResponse("done")

    table = [("GET", "/health", health), ("POST", "/echo", echo), ("GET", "/wait", wait)]
    access = Access(keys.KeyRing({"one": keys.hash_key(KEY)}))
    application = access.application(table)
    config = uvicorn.Config(application, http=connection.limited(most), log_config=None)
    server = uvicorn.Server(config)
    with contextlib.closing(Address(port=0).bind()) as listener:
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield listener.getsockname()[1]
        finally:
            released.set()
            server.should_exit = True
            thread.join()


def until_in_work(count: int) -> None:
    """Wait until the server answers so many requests; the time-out of the test ends it."""
    while len(in_work) < count:
        time.sleep(0.01)


def opened(undo: contextlib.ExitStack, port: Port, sent: bytes) -> socket.socket:
    """A connection on which `sent` was sent."""
    one = undo.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
    one.sendall(sent)
    return one


def everything(one: socket.socket) -> bytes:
    """What comes until the other side closes."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := one.recv(1 << 16):
            found += piece
    return found


def answered(undo: contextlib.ExitStack, port: Port, sent: bytes) -> bytes:
    """All that is answered; asked again when a busy machine brought the first header too late."""
    while (answer := everything(opened(undo, port, sent))).startswith(b"HTTP/1.1 408 "):
        pass
    return answer


def request(path: str, body_bytes: int = 0, key: str = KEY, method: str = "GET") -> bytes:
    """A request's header."""
    lines = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
    return f"{lines}Content-Length: {body_bytes}\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("sent", "name"),
    [(b"", "HEADER_S"), (SLOW, "HEADER_S"), (request("/echo", 9, method="POST"), "BODY_S")],
)
def test_a_request_that_does_not_come_is_given_up(
    monkeypatch: pytest.MonkeyPatch, sent: bytes, name: str
) -> None:
    """Nothing, half a header, half a body: 408 with an id, then the end, though bytes trickle."""
    monkeypatch.setattr(connection, name, 0.3)
    with contextlib.ExitStack() as undo:
        one = opened(undo, undo.enter_context(served(9)), sent)
        answer = b""
        while not answer:
            if sent:
                with contextlib.suppress(ConnectionError):  # its answer may be under way
                    one.sendall(b"a")
            one.settimeout(0.05)
            with contextlib.suppress(TimeoutError):
                answer = one.recv(1 << 16)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"X-Request-Id: " in answer
        assert b'"code":"request_timeout"' in answer


def test_a_body_that_nobody_wants_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """401 at once; a client that goes on sending is cut, and its answer stays the only one."""
    monkeypatch.setattr(connection, "BODY_S", 0.3)
    with contextlib.ExitStack() as undo:
        port = undo.enter_context(served(9))
        one = opened(undo, port, request("/echo", 1 << 20, key="wrong", method="POST"))
        answer = one.recv(1 << 16)
        with contextlib.suppress(ConnectionError):
            while True:
                one.sendall(b"a")
                time.sleep(0.01)
        assert answer.startswith(b"HTTP/1.1 401 ")
        assert answer.count(b"HTTP/1.1") == 1


def test_an_answer_has_no_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that is whole may take as long as it takes."""
    monkeypatch.setattr(connection, "HEADER_S", 0.1)
    monkeypatch.setattr(connection, "BODY_S", 0.1)
    with contextlib.ExitStack() as undo:
        port = undo.enter_context(served(9))
        one = opened(undo, port, request("/wait"))
        one.settimeout(0.05)
        while not in_work:
            with contextlib.suppress(TimeoutError):
                one.recv(1)  # a busy machine brought the header too late
                one = opened(undo, port, request("/wait"))
                one.settimeout(0.05)
        one.settimeout(0.5)
        with pytest.raises(TimeoutError):
            one.recv(1)


def test_the_longest_waiting_makes_room(tmp_path: Path) -> None:
    """The first of too many unfinished requests goes with 503; the one in work stays."""
    with contextlib.ExitStack() as undo:
        port = undo.enter_context(served(3))
        working = opened(undo, port, request("/wait"))
        first, second = opened(undo, port, SLOW), opened(undo, port, SLOW)
        until_in_work(1)
        assert httpx.get(f"http://127.0.0.1:{port}/health").text == "well"
        assert everything(first).startswith(b"HTTP/1.1 503 ")
        second.sendall(b"\r\n\r\n")
        assert second.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        working.settimeout(0.1)
        with pytest.raises(TimeoutError):
            working.recv(1)


def test_an_answer_on_its_way_is_not_cut_to_make_room() -> None:
    """A client that takes its answer slowly still gets the whole of it, with newcomers waiting."""
    size = 4 << 20
    with served(2) as port, contextlib.ExitStack() as undo:
        one = opened(undo, port, request("/echo", size, method="POST"))
        one.sendall(b"x" * size)
        received = len(one.recv(1000))
        for _ in range(2):
            opened(undo, port, SLOW)
        time.sleep(0.2)
        while received < size:
            got = len(one.recv(1 << 16))
            assert got, f"the answer ended after {received} bytes"
            received += got


def test_when_all_are_answered_a_new_one_may_ask_for_health_alone() -> None:
    """Others get 503 and when to try again; beyond the reserve nothing is read."""
    with contextlib.ExitStack() as undo:
        port = undo.enter_context(served(2))
        for _ in range(2):
            opened(undo, port, request("/wait"))
        until_in_work(2)
        url = f"http://127.0.0.1:{port}"
        assert httpx.get(url + "/health").text == "well"
        refused = httpx.get(url + "/wait", headers={"Authorization": f"Bearer {KEY}"})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        assert refused.json()["error"]["code"] == "too_many_connections"
        assert len(refused.headers["x-request-id"]) == 32


def test_what_is_not_http_is_refused_in_the_form_of_other_errors() -> None:
    """An error object with an id."""
    with contextlib.ExitStack() as undo:
        one = opened(undo, undo.enter_context(served(9)), b"hello\r\n\r\n")
        answer = everything(one)
        assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert b"X-Request-Id: " in answer
        assert b'"code":"bad_request"' in answer


def test_an_idle_connection_ends_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """After its answer nothing is owed: an error would be taken for that of the next request."""
    monkeypatch.setattr(connection, "HEADER_S", 0.3)
    with contextlib.ExitStack() as undo:
        answer = answered(undo, undo.enter_context(served(9)), request("/health"))
        assert answer.endswith(b"\r\n\r\nwell")
        assert answer.count(b"HTTP/1.1") == 1


def test_a_second_request_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a header after an answer: its own 408."""
    monkeypatch.setattr(connection, "HEADER_S", 0.3)
    with contextlib.ExitStack() as undo:
        port = undo.enter_context(served(9))
        first, _, second = answered(undo, port, request("/health") + SLOW).partition(b"well")
        assert first.startswith(b"HTTP/1.1 200 ")
        assert second.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(("files", "most"), [(16, 8), (512, 204), (1 << 20, 4096)])
def test_the_bound_follows_the_files(files: int, most: int) -> None:
    """Room for two files a request and those of the process itself."""
    assert connections_that_fit(files) == most


def test_without_a_limit_of_files_the_bound_is_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unlimited number is none to compute with."""
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda which: unlimited)
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: None)
    assert connections_that_fit(raise_file_limit()) == 4096
