"""One process that serves one model: bind first, load, then answer until told to stop.

The address is bound before the model is loaded, so a port in use costs no wait.
On SIGTERM or Ctrl-C nothing new is accepted, live streams may end within the
drain time, and the exit code is 0. When the engine loses its device the process
answers what is open with errors and exits 3, for a supervisor to start anew.
How many connections there may be follows from how many files the process may open.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import resource
import socket
import stat
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from starlette.applications import Starlette

from bedplate.core.errors import EXIT_DONE, EXIT_ENVIRONMENT, EnvironmentLacks, UsageError
from bedplate.core.health import HealthState
from bedplate.serving.connection import limited

if TYPE_CHECKING:
    from bedplate.serving.access import Access
    from bedplate.serving.load import Engine

DRAIN_S = 20
_WATCH_S = 0.1
_BACKLOG = 2048  # uvicorn's own
# Connections that are accepted before the first of them is looked at: they hold files
# beyond the bound, so few. A measure of bursts, not of speed: each turn of the loop takes as many.
_ACCEPTED_AT_ONCE = 16
# Of the files a process may open: the gateway needs two for each request, and both keep some.
_FILES_PER_CONNECTION = 2.5
_LAST_PORT = 65535
_MOST_CONNECTIONS = 4096  # a header of 64 KiB each is 256 MiB


@dataclass(frozen=True)
class Address:
    """Where to listen: a host and port, or the path of a Unix socket."""

    host: str = "127.0.0.1"
    port: int = 8000
    path: Path | None = None

    def bind(self) -> socket.socket:
        """A bound socket. Raises `EnvironmentLacks` when the address is taken or forbidden,
        `UsageError` for a host that is not this machine's."""
        if self.path is not None:
            return self._bind_path(self.path)
        if not 0 <= self.port <= _LAST_PORT:
            raise UsageError(
                f"{self.port} is not a port",
                code="serving.address",
                remedy="give one from 1 to 65535, or 0 for a free one",
            )
        try:
            family = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0][0]
            # Named, or asyncio takes it for something else and lets small answers wait for
            # the acknowledgement of the one before (TCP_NODELAY stays off): 45 ms instead of 1.
            listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        except OSError as cause:
            raise self._refusal(cause) from cause
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((self.host, self.port))
            listener.listen(_BACKLOG)  # from now on nobody else can bind it
        except OSError as cause:
            listener.close()
            raise self._refusal(cause) from cause
        return listener

    def _refusal(self, cause: OSError) -> Exception:
        number = cause.errno
        if number == errno.EADDRINUSE:
            return EnvironmentLacks(
                f"port {self.port} of {self.host} is in use",
                code="serving.port_in_use",
                remedy="stop what listens there (`ss -ltnp` names it) or give another --port",
            )
        if number in (errno.EACCES, errno.EPERM):
            return EnvironmentLacks(
                f"no permission to listen on port {self.port}",
                code="serving.port_forbidden",
                remedy="give a --port above 1023",
            )
        return UsageError(
            f"cannot listen on {self.host} port {self.port}: {cause}", code="serving.address"
        )

    @staticmethod
    def _bind_path(path: Path) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with _alone_in(path.parent):
                _remove_stale(path)
                before = os.umask(0o177)
                try:
                    listener.bind(str(path))
                finally:
                    os.umask(before)
        except OSError as cause:
            listener.close()
            raise EnvironmentLacks(
                f"cannot listen on {path}: {cause.strerror or cause}", code="serving.address"
            ) from cause
        except EnvironmentLacks:
            listener.close()
            raise
        return listener

    def close(self, listener: socket.socket) -> None:
        """Close what `bind` gave, and remove a Unix socket's name."""
        _close(listener, _bound_path(listener))

    def url(self, listener: socket.socket) -> str:
        """How to call it; a port of 0 has become a real one."""
        if self.path is not None:
            return f"unix:{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{listener.getsockname()[1]}"


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """One process at a time: between looking at a stale socket and taking its place another
    could have taken it. Where folders know no locks the block runs all the same."""
    with contextlib.ExitStack() as undo:
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            undo.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def _remove_stale(path: Path) -> None:
    """Remove the socket that a killed process left at `path`; nothing else is ever removed.

    Raises `EnvironmentLacks` when something else lies there, or a process holds it.
    Source: connect(2), ECONNREFUSED and EPROTOTYPE.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise EnvironmentLacks(
            f"cannot listen on {path}: something that is not a socket lies there",
            code="serving.address",
            remedy="give another path, or move it away",
        )
    # Of another type: so a socket that is bound refuses it whether its process listens
    # already or still loads, and one that nobody holds refuses the connection.
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return
        except OSError as cause:
            if cause.errno != errno.EPROTOTYPE:
                raise
    raise EnvironmentLacks(
        f"cannot listen on {path}: another process does",
        code="serving.address_in_use",
        remedy="stop it or give another path",
    )


def _bound_path(listener: socket.socket) -> Path | None:
    """The path of a Unix socket that is bound to one."""
    if listener.family != socket.AF_UNIX or listener.fileno() < 0:
        return None
    name = listener.getsockname()
    return Path(name) if isinstance(name, str) and name else None


def _close(listener: socket.socket, path: Path | None) -> None:
    listener.close()
    if path is not None:
        with contextlib.suppress(OSError):
            path.unlink()


def serve(
    listener: socket.socket,
    engine: Engine,
    access: Access,
    on_ready: Callable[[], None] | None = None,
) -> int:
    """Answer for `engine` on `listener` until a signal or the engine's end; the exit code.

    Closes both.
    """
    from bedplate.serving.server import Application  # the gateway has none of it

    application = Application(engine, access, engine.metrics_text).build(on_stop=engine.close)
    answer_until_stopped(
        application,
        listener,
        on_ready=on_ready,
        failed=lambda: engine.health().state is HealthState.FAILED,
    )
    return EXIT_ENVIRONMENT if engine.failed else EXIT_DONE


def answer_until_stopped(
    application: Starlette,
    listener: socket.socket,
    *,
    on_ready: Callable[[], None] | None = None,
    failed: Callable[[], bool] = lambda: False,
) -> int:
    """Run an ASGI application on a bound socket until SIGTERM, SIGINT or `failed()`.

    Streams that are open may end within `DRAIN_S`. Closes the listener; returns
    the exit code 0.
    """
    path = _bound_path(listener)
    config = uvicorn.Config(
        application,
        http=limited(connections_that_fit(raise_file_limit())),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=DRAIN_S,
        h11_max_incomplete_event_size=64 << 10,
        backlog=_ACCEPTED_AT_ONCE,
    )
    server = _Server(config)

    async def watch() -> None:
        while not server.started and not server.should_exit:
            await asyncio.sleep(_WATCH_S / 10)
        if server.started and not server.should_exit:
            listener.listen(_BACKLOG)  # the kernel may hold more than one turn accepts
            if on_ready is not None:
                on_ready()
        while not server.should_exit:
            await asyncio.sleep(_WATCH_S)
            server.should_exit = server.should_exit or failed()

    async def run() -> None:
        watcher = asyncio.create_task(watch())
        try:
            await server.serve(sockets=[listener])
        finally:
            watcher.cancel()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run())
    _close(listener, path)
    return EXIT_DONE


class _Server(uvicorn.Server):
    """uvicorn's server, without its habit of dying of the signal that it has obeyed."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Take SIGTERM and SIGINT as requests to stop; they are not raised again."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


def raise_file_limit() -> int:
    """Let this process open as many files as it may; that number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # an unlimited one beyond the kernel's own
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return _MOST_CONNECTIONS * 16 if soft == resource.RLIM_INFINITY else soft


def connections_that_fit(files: int) -> int:
    """How many connections may be open at once in a process of `files` files."""
    return max(8, min(_MOST_CONNECTIONS, int(files / _FILES_PER_CONNECTION)))
