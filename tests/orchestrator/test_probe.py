from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bedplate.orchestrator.probe import Endpoint


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    """A Unix socket that listens."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "s"))
        made.listen()
        yield made


def answer(listener: socket.socket, data: bytes) -> threading.Thread:
    """Answer one connection with raw bytes."""

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            with contextlib.suppress(OSError):  # not all of it is wanted
                connection.sendall(data)

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


@pytest.mark.parametrize(
    ("data", "health"),
    [
        (b'HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{"state":"a"}', {"state": "a"}),
        (b'HTTP/1.1 503 No\r\nContent-Length: 13\r\n\r\n{"state":"b"}', {"state": "b"}),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", None),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 5_000_000, None),
        (b"\x00\xff", None),
        (b"", None),
    ],
)
def test_what_a_process_says_is_its_health_or_nothing(
    listener: socket.socket, tmp_path: Path, data: bytes, health: dict[str, str] | None
) -> None:
    """Whatever the status; half answers, other types and noise are no answer."""
    thread = answer(listener, data)
    try:
        assert Endpoint(path=tmp_path / "s").ask(10) == health
    finally:
        thread.join()


def test_silence_and_absence_are_no_answer(listener: socket.socket, tmp_path: Path) -> None:
    """A process that takes the connection and says nothing; no socket; a closed port."""
    assert Endpoint(path=tmp_path / "s").ask(0.05) is None
    assert Endpoint(path=tmp_path / "none").ask(1) is None
    assert Endpoint("127.0.0.1", 9).ask(1) is None


def test_a_port_is_asked_directly_whatever_proxy_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The environment's proxies are not for this machine's own processes."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        thread = answer(listener, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        try:
            assert Endpoint("127.0.0.1", listener.getsockname()[1]).ask(10) == {}
        finally:
            thread.join()
