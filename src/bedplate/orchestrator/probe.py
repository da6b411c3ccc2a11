"""Asking a process for its health, over TCP or a Unix socket.

Made of the standard library's HTTP client: the supervisor lives long and does
little else, so it stays small. A connection is opened for each question; what a
process says within the time-out is its health, anything else is no answer.
"""

from __future__ import annotations

import http.client
import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LONGEST_ANSWER_BYTES = 1 << 16


@dataclass(frozen=True)
class Endpoint:
    """A health route: on a Unix socket when `path` is given, else at host and port."""

    host: str = "localhost"
    port: int = 80
    path: Path | None = None
    route: str = "/health"

    def ask(self, timeout_s: float) -> dict[str, Any] | None:
        """The JSON object that the route answers, whatever its status; None for anything else."""
        connection = _Connection(self, timeout_s)
        try:
            connection.request("GET", self.route)
            body = json.loads(connection.getresponse().read(_LONGEST_ANSWER_BYTES))
        except (OSError, http.client.HTTPException, ValueError, RecursionError):
            return None
        finally:
            connection.close()
        return body if isinstance(body, dict) else None


class _Connection(http.client.HTTPConnection):
    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        super().__init__(endpoint.host, endpoint.port, timeout=timeout_s)
        self._path = endpoint.path

    def connect(self) -> None:
        """Connect, by the Unix socket if there is one."""
        if self._path is None:
            super().connect()
            return
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))
