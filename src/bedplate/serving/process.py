"""One process that serves one model: bind first, load, then answer until told to stop.

The address is bound before the model is loaded, so a port in use costs no wait.
On SIGTERM or Ctrl-C nothing new is accepted, live streams may end within the
drain time, and the exit code is 0. When the engine loses its device the process
answers what is open with errors and exits 3, for a supervisor to start anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from bedplate.core.errors import EXIT_DONE, EXIT_ENVIRONMENT, EnvironmentLacks, UsageError
from bedplate.core.health import HealthState
from bedplate.serving.access import Access
from bedplate.serving.load import Engine
from bedplate.serving.server import Application

DRAIN_S = 20
_WATCH_S = 0.1
_BACKLOG = 2048  # uvicorn's own


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
        try:
            family = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0][0]
            # Named, or asyncio takes it for something else and lets small answers wait for
            # the acknowledgement of the one before (TCP_NODELAY stays off): 45 ms instead of 1.
            listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        except (OSError, OverflowError) as cause:
            raise self._refusal(cause) from cause
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((self.host, self.port))
            listener.listen(_BACKLOG)  # from now on nobody else can bind it
        except (OSError, OverflowError) as cause:
            listener.close()
            raise self._refusal(cause) from cause
        return listener

    def _refusal(self, cause: OSError | OverflowError) -> Exception:
        number = cause.errno if isinstance(cause, OSError) else None
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
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
            before = os.umask(0o177)
            try:
                listener.bind(str(path))
            finally:
                os.umask(before)
        except OSError as cause:
            listener.close()
            raise EnvironmentLacks(
                f"cannot listen on {path}: {cause.strerror}", code="serving.address"
            ) from cause
        return listener

    def url(self, listener: socket.socket) -> str:
        """How to call it; a port of 0 has become a real one."""
        if self.path is not None:
            return f"unix:{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{listener.getsockname()[1]}"


def serve(
    listener: socket.socket,
    engine: Engine,
    access: Access,
    on_ready: Callable[[], None] | None = None,
) -> int:
    """Answer for `engine` on `listener` until a signal or the engine's end; the exit code.

    Closes both.
    """
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
    config = uvicorn.Config(
        application,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=DRAIN_S,
        h11_max_incomplete_event_size=64 << 10,
    )
    server = uvicorn.Server(config)

    async def watch() -> None:
        while not server.started and not server.should_exit:
            await asyncio.sleep(_WATCH_S / 10)
        if on_ready is not None and server.started:
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
    listener.close()
    return EXIT_DONE
