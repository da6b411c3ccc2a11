"""The gateway as a process: started by the supervisor, ended by it."""

from __future__ import annotations

import contextlib
from pathlib import Path

from bedplate.core import keyfile
from bedplate.core.paths import run_dir
from bedplate.orchestrator import record
from bedplate.orchestrator.gateway.app import Gateway
from bedplate.orchestrator.gateway.relay import Upstream
from bedplate.serving.api import Access, Address, answer_until_stopped


def run_gateway(data: Path, model: str, host: str, port: int) -> int:
    """Answer until SIGTERM; the exit code. Raises `EnvironmentLacks` for a port in use."""
    with contextlib.closing(Address(host, port).bind()) as listener:
        internal = record.internal_key(data)
        ring = keyfile.load(data)
        upstream = Upstream(run_dir(data) / record.ENGINE_SOCKET, internal)
        gateway = Gateway(upstream, Access(ring, internal), model)
        return answer_until_stopped(gateway.build(), listener)
