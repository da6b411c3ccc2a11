"""The supervisor: a small process that keeps engine and gateway running.

It imports neither model nor device code, so that it has little reason to fail.
The two children do not know each other's process: the gateway asks the engine at
a socket path that stays the same over restarts, and answers 503 meanwhile.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from bedplate.core.errors import EXIT_DONE, BedplateError
from bedplate.core.files import replace
from bedplate.core.logging import get_logger
from bedplate.core.modelname import model_name
from bedplate.core.parent import adopt_orphans, collect_orphans
from bedplate.core.paths import run_dir
from bedplate.core.python import PYTHON
from bedplate.orchestrator import record
from bedplate.orchestrator.child import Child, Command, Patience
from bedplate.orchestrator.errors import AlreadyRunning
from bedplate.orchestrator.probe import Endpoint

TICK_S = 0.05
STATUS_SCHEMA = "bedplate.platform-status/1"
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}

log = get_logger("orchestrator")


@dataclass(frozen=True)
class Plan:
    """What to run. `model` is a known name or an absolute path; `engine_flags` go to
    `bedplate serve` as they are."""

    data: Path
    model: str
    host: str
    port: int
    engine_flags: Sequence[str] = ()
    patience: Patience = field(default_factory=Patience)

    @property
    def served_name(self) -> str:
        """The model's name in the API."""
        return model_name(self.model)

    @property
    def url(self) -> str:
        """Where this machine reaches the gateway."""
        host = self.reachable_host
        written = f"[{host}]" if ":" in host else host
        return f"http://{written}:{self.port}"

    @property
    def reachable_host(self) -> str:
        """The host, or loopback when it stands for every address."""
        return _ANY_ADDRESS.get(self.host, self.host)


def commands(plan: Plan) -> list[Command]:
    """The children: the engine first, since the gateway is of no use without it."""
    run = run_dir(plan.data)
    socket, key = run / record.ENGINE_SOCKET, run / record.INTERNAL_KEY_FILE
    python = [*PYTHON, "-m", "bedplate.cli"]
    common = ["--data-dir", str(plan.data), "--parent", str(os.getpid())]
    engine = [*python, "serve", plan.model, "--served-model-name", plan.served_name]
    engine += ["--uds", str(socket), "--internal-key-file", str(key)]
    gateway = [*python, "gateway", plan.served_name, "--host", plan.host, "--port", str(plan.port)]
    at_engine = Endpoint(path=socket)
    at_gateway = Endpoint(plan.reachable_host, plan.port)
    return [
        Command("engine", [*engine, *common, *plan.engine_flags], run / "engine.log", at_engine),
        Command("gateway", [*gateway, *common], run / "gateway.log", at_gateway),
    ]


def run_supervisor(plan: Plan) -> int:
    """Run until SIGTERM, SIGINT or SIGHUP; the exit code. A second one cuts what is open.

    Raises `AlreadyRunning` when another platform holds this data directory.
    """
    held = record.lock(plan.data)
    if held is None:
        raise AlreadyRunning(f"another platform is starting or stopping on {plan.data}")
    try:
        return _supervise(plan)
    finally:
        record.release(plan.data, held)


def _supervise(plan: Plan) -> int:
    stopping: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.append(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    adopt_orphans()
    key_file = run_dir(plan.data) / record.INTERNAL_KEY_FILE
    replace(key_file, secrets.token_urlsafe(32), mode=0o600, durable=False)
    children = [Child(command, plan.patience) for command in commands(plan)]
    own = record.start_ticks(os.getpid()) or 0
    told = record.Record(
        record.SCHEMA,
        os.getpid(),
        own,
        plan.url,
        plan.served_name,
        time.time_ns(),
        plan.model,
        plan.host,
    )
    record.write(plan.data, told)
    shown: list[dict[str, Any]] = []
    try:
        while not stopping:
            for child in children:
                if not stopping:  # asked to while the one before was looked at
                    child.tick()
            collect_orphans([child.pid for child in children if child.pid])
            now = [describe(child) for child in children]
            if now != shown:
                publish(plan.data, now)
                shown = now
            time.sleep(TICK_S)
    finally:
        log.info("stopping")
        mark_stopping(plan.data, told)
        # The engine first: it lets live streams end, and the gateway is still there to
        # end those that take too long with an error event.
        for child in children:
            child.ask_to_stop()
            child.wait(hurry=lambda: len(stopping) > 1)
    return EXIT_DONE


def mark_stopping(data: Path, told: record.Record) -> None:
    """Say in the record that this platform goes away. A full disk costs the mark alone."""
    try:
        record.write(data, told.ending())
    except BedplateError as error:
        log.warning("record_not_written", message=error.message)


def publish(data: Path, children: list[dict[str, Any]]) -> None:
    """Write the status file. A full disk costs the file, never the platform."""
    document = json.dumps({"schema": STATUS_SCHEMA, "children": children})
    try:
        replace(run_dir(data) / record.STATUS_FILE, document, mode=0o600, durable=False)
    except BedplateError as error:
        log.warning("status_not_written", message=error.message)


def describe(child: Child) -> dict[str, Any]:
    """One child as the status file and `bedplate status --json` show it."""
    return {
        "name": child.command.name,
        "state": child.state,
        "reason": child.reason,
        "since_ns": child.since_ns,
        "pid": child.pid,
        "restarts": child.restarts,
        "last_end": child.last_end,
        "exit_code": child.exit_code,
        "was_well": child.was_well,
        "last_words": child.last_words,
    }
