"""The supervisor: a small process that keeps engine and gateway running.

It imports neither model nor device code, so that it has little reason to fail.
The two children do not know each other's process: the gateway asks the engine at
a socket path that stays the same over restarts, and answers 503 meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from bedplate.core.errors import EXIT_DONE
from bedplate.core.files import replace
from bedplate.core.logging import get_logger
from bedplate.core.paths import run_dir
from bedplate.orchestrator import record
from bedplate.orchestrator.child import Child, Command
from bedplate.orchestrator.errors import StartFailed

TICK_S = 0.05
STATUS_FILE = "status.json"
INTERNAL_KEY_FILE = "internal.key"

log = get_logger("orchestrator")


@dataclass(frozen=True)
class Plan:
    """What to run. `engine_flags` go to `bedplate serve` as they are."""

    data: Path
    model: str
    host: str
    port: int
    engine_flags: Sequence[str] = ()

    @property
    def served_name(self) -> str:
        """The model's name in the API: the file's or folder's, without what leads there."""
        return Path(self.model).name.removesuffix(".gguf")

    @property
    def url(self) -> str:
        """Where the gateway answers."""
        return f"http://{self.host}:{self.port}"


def commands(plan: Plan) -> list[Command]:
    """The children: the engine first, since the gateway is of no use without it."""
    run = run_dir(plan.data)
    socket, key = run / "engine.sock", run / INTERNAL_KEY_FILE
    python = [sys.executable, "-m", "bedplate.cli"]
    common = ["--data-dir", str(plan.data), "--parent", str(os.getpid())]
    engine = [*python, "serve", plan.model, "--served-model-name", plan.served_name]
    engine += ["--uds", str(socket), "--internal-key-file", str(key)]
    gateway = [*python, "gateway", plan.served_name, "--host", plan.host, "--port", str(plan.port)]
    return [
        Command(
            "engine",
            [*engine, *common, *plan.engine_flags],
            run / "engine.log",
            "http://localhost/health",
            socket,
        ),
        Command("gateway", [*gateway, *common], run / "gateway.log", f"{plan.url}/health"),
    ]


def write_internal_key(data: Path) -> str:
    """A new key for the processes of this platform, readable by their user alone."""
    key = secrets.token_urlsafe(32)
    replace(run_dir(data) / INTERNAL_KEY_FILE, key, mode=0o600, durable=False)
    return key


def run_supervisor(plan: Plan) -> int:
    """Run until SIGTERM or SIGINT; the exit code.

    Raises `StartFailed` when another platform holds this data directory.
    """
    held = record.lock(plan.data)
    if held is None:
        raise StartFailed(f"another platform is starting or stopping on {plan.data}")
    with held:
        return _supervise(plan)


def _supervise(plan: Plan) -> int:
    stopping: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.append(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    write_internal_key(plan.data)
    children = [Child(command) for command in commands(plan)]
    own = record.start_ticks(os.getpid()) or 0
    record.write(
        plan.data,
        record.Record(record.SCHEMA, os.getpid(), own, plan.url, plan.served_name, time.time_ns()),
    )
    shown: object = None
    try:
        while not stopping:
            for child in children:
                child.tick()
            now = [_status(child) for child in children]
            if now != shown:
                _publish(plan.data, now)
                shown = now
            time.sleep(TICK_S)
    finally:
        log.info("stopping")
        for child in reversed(children):  # the gateway first: it lets live streams end
            child.ask_to_stop()
            child.wait()
        record.remove(plan.data)
        with contextlib.suppress(FileNotFoundError):
            (run_dir(plan.data) / STATUS_FILE).unlink()
    return EXIT_DONE


def _status(child: Child) -> dict[str, object]:
    failed = child.failed_to_start()
    return {
        "name": child.command.name,
        "state": child.state,
        "reason": child.reason,
        "pid": child.pid,
        "restarts": child.restarts,
        "last_words": child.last_words() if failed else "",
    }


def _publish(data: Path, children: list[dict[str, object]]) -> None:
    document = {"schema": "bedplate.platform-status/1", "children": children}
    replace(run_dir(data) / STATUS_FILE, json.dumps(document), mode=0o600, durable=False)
