"""Where a server listens: addresses that are taken, wrong or too open."""

from __future__ import annotations

import contextlib
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from bedplate.core.errors import EXIT_ENVIRONMENT, EnvironmentLacks, UsageError
from bedplate.serving.process import Address


def test_answers_do_not_wait_for_acknowledgements() -> None:
    """asyncio sets TCP_NODELAY only on sockets that name their protocol; without it every
    small answer after the first waits for the client's delayed acknowledgement."""
    with contextlib.closing(Address(port=0).bind()) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_port_0_becomes_a_real_port() -> None:
    """The URL names it; IPv6 hosts are in brackets."""
    address = Address(port=0)
    with contextlib.closing(address.bind()) as listener:
        assert address.url(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_taken_port_is_the_environments_fault() -> None:
    """Exit code 3; the sentence names port, host and what to do."""
    with contextlib.closing(Address(port=0).bind()) as listener:
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(
            EnvironmentLacks, match=rf"port {port} of 127\.0\.0\.1 is in use; .*ss -l"
        ):
            Address(port=port).bind()


@pytest.mark.parametrize("port", [-1, 65_536, 1 << 70])
def test_a_number_that_is_no_port_is_a_usage_error(port: int) -> None:
    """Said with what would be one."""
    with pytest.raises(UsageError, match=f"^{port} is not a port; give one from 1 to 65535"):
        Address(port=port).bind()


@pytest.mark.parametrize(("host", "port"), [("203.0.113.1", 0), ("not a host", 0)])
def test_an_address_that_is_not_ours_is_a_usage_error(host: str, port: int) -> None:
    """Another machine's address, no address, and a port that cannot be."""
    with pytest.raises(UsageError, match=f"cannot listen on {host} port {port}"):
        Address(host, port).bind()


def test_a_unix_socket_is_its_users_alone_and_replaces_a_stale_one(tmp_path: Path) -> None:
    """Mode 0600 from the first moment; the socket of a killed process is no obstacle."""
    path = tmp_path / "s"
    code = f"import socket; socket.socket(socket.AF_UNIX).bind({str(path)!r})"
    subprocess.run([sys.executable, "-c", code], check=True)
    address = Address(path=path)
    with contextlib.closing(address.bind()) as listener:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert address.url(listener) == f"unix:{path}"


def test_a_unix_socket_in_no_folder_is_the_environments_fault(tmp_path: Path) -> None:
    """Exit code 3, the path in the sentence."""
    with pytest.raises(EnvironmentLacks, match=f"cannot listen on {tmp_path}/none/s"):
        Address(path=tmp_path / "none" / "s").bind()


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_a_unix_socket_never_replaces_what_is_not_one(tmp_path: Path, kind: str) -> None:
    """A mistyped path costs a sentence with exit code 3, not a file."""
    path, model = tmp_path / "s", tmp_path / "model.gguf"
    model.write_text("precious")
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(model)
    else:
        path.write_text("precious")
    with pytest.raises(EnvironmentLacks, match=f"cannot listen on {path}: .*not a socket") as info:
        Address(path=path).bind()
    assert info.value.exit_code == EXIT_ENVIRONMENT
    assert model.read_text() == "precious"
    assert path.is_dir() or path.read_text() == "precious"


def test_a_unix_socket_never_replaces_one_that_is_listened_on(tmp_path: Path) -> None:
    """Also when its queue is full; the other process goes on."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen(0)
        with socket.socket(socket.AF_UNIX) as first:
            first.connect(str(path))
            with pytest.raises(EnvironmentLacks, match="another process does"):
                Address(path=path).bind()
        assert path.is_socket()


def test_a_unix_socket_never_replaces_that_of_a_process_which_still_loads(tmp_path: Path) -> None:
    """Bound and not listened on, as while a model is read: the second is refused in a sentence."""
    path = tmp_path / "s"
    address = Address(path=path)
    with contextlib.closing(address.bind()) as listener:
        with pytest.raises(EnvironmentLacks, match=f"listen on {path}: another process does"):
            Address(path=path).bind()
        listener.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))


def test_of_many_that_find_a_stale_socket_one_has_its_place(tmp_path: Path) -> None:
    """Whoever loses leaves the winner's socket where it is."""
    path, count = tmp_path / "s", 8
    begin = threading.Barrier(count)

    def bind(_: int) -> socket.socket | str:
        begin.wait()
        try:
            return Address(path=path).bind()
        except EnvironmentLacks as error:
            return error.code

    with ThreadPoolExecutor(count) as pool:
        for _ in range(20):
            with socket.socket(socket.AF_UNIX) as killed:
                killed.bind(str(path))
            found = list(pool.map(bind, range(count)))
            (listener,) = [one for one in found if isinstance(one, socket.socket)]
            assert found.count("serving.address_in_use") == count - 1
            listener.listen()
            with listener, socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
            path.unlink()


def test_a_unix_socket_goes_with_its_listener(tmp_path: Path) -> None:
    """A server that does not come to serve leaves nothing behind."""
    address = Address(path=tmp_path / "s")
    address.close(address.bind())
    assert list(tmp_path.iterdir()) == []


def test_a_unix_socket_without_a_name_in_a_folder_is_just_closed() -> None:
    """Of an abstract name, or of none, nothing is left to remove."""
    for name in ("\0bedplate-test", None):
        listener = socket.socket(socket.AF_UNIX)
        if name is not None:
            listener.bind(name)
        Address().close(listener)
        assert listener.fileno() < 0


STREAMING = """
import asyncio, sys
from pathlib import Path
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route
from bedplate.serving.process import Address, answer_until_stopped

async def words():
    yield b"first "
    while not Path(sys.argv[2]).exists():
        await asyncio.sleep(0.01)
    yield b"last"

async def stream(request):
    return StreamingResponse(words())

address = Address(path=Path(sys.argv[1]))
application = Starlette(routes=[Route("/stream", stream)])
sys.exit(answer_until_stopped(application, address.bind(), on_ready=lambda: print(1, flush=True)))
"""


@contextlib.contextmanager
def process(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A Python process that has said it is ready; ended by force at the latest."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline()
            yield child
        finally:
            child.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_streams_end_and_is_a_success(tmp_path: Path, number: int) -> None:
    """Exit code 0, the open stream whole, the socket's name gone."""
    path, end = tmp_path / "s", tmp_path / "end"
    transport = httpx.HTTPTransport(uds=str(path))
    with (
        process(STREAMING, path, end) as child,
        httpx.Client(transport=transport, timeout=30) as client,
        client.stream("GET", "http://localhost/stream") as answer,
    ):
        pieces = answer.iter_text()
        assert next(pieces) == "first "
        child.send_signal(number)
        until_refused(path)
        end.touch()
        assert "".join(pieces) == "last"
        assert child.wait(30) == 0
    assert not path.exists()


def until_refused(path: Path) -> None:
    """Wait until nobody accepts; the drain time ends it otherwise."""
    with contextlib.suppress(ConnectionRefusedError):
        while True:
            with socket.socket(socket.AF_UNIX) as one:
                one.connect(str(path))


LOSING = """
import sys
import threading
from pathlib import Path
from bedplate.core import keys
from bedplate.hal.api import DeviceError
from bedplate.serving.api import Access, Address, Engine, EngineOptions, serve

engine = Engine(sys.argv[1], EngineOptions(max_model_tokens=64, max_running=4), name="tiny")

def lose(plan, stall_ns):
    raise DeviceError("the device is gone")

engine._runner.run = lose
access = Access(keys.KeyRing({}), "internal")
listener = Address(path=Path(sys.argv[2])).bind()
sys.exit(serve(listener, engine, access, lambda: print(1, flush=True)))
"""


def test_a_lost_device_is_the_environments_fault(tiny_path: Path, tmp_path: Path) -> None:
    """The open request gets its error, then the process exits 3 by itself."""
    path = tmp_path / "s"
    transport = httpx.HTTPTransport(uds=str(path))
    with (
        process(LOSING, tiny_path, path) as child,
        httpx.Client(transport=transport, timeout=30) as client,
    ):
        body = {"model": "tiny", "prompt": "hello"}
        headers = {"Authorization": "Bearer internal"}
        answer = client.post("http://localhost/v1/completions", json=body, headers=headers)
        assert answer.status_code == 503
        assert child.wait(30) == EXIT_ENVIRONMENT
