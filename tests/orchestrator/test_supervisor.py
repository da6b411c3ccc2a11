from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.orchestrator.conftest import processes_of, run_files, until

from bedplate.core.paths import run_dir
from bedplate.orchestrator import record
from bedplate.orchestrator.errors import AlreadyRunning
from bedplate.orchestrator.supervisor import Plan, commands, publish, run_supervisor


@pytest.mark.parametrize(
    ("host", "authority"),
    [
        ("127.0.0.1", "127.0.0.1:8000"),
        ("0.0.0.0", "127.0.0.1:8000"),
        ("::1", "[::1]:8000"),
        ("::", "[::1]:8000"),
        ("plate.example", "plate.example:8000"),
    ],
)
def test_the_url_is_one_that_this_machine_reaches(host: str, authority: str) -> None:
    """Every address means loopback from here; IPv6 is in brackets."""
    plan = Plan(Path("/data"), "smollm2", host, 8000)
    assert plan.url == f"http://{authority}"
    assert commands(plan)[1].health.host == plan.reachable_host


@pytest.mark.parametrize(
    ("model", "name"),
    [("smollm2", "smollm2"), ("/models/a.b.gguf", "a.b"), ("/models/folder", "folder")],
)
def test_a_model_is_served_under_its_last_name(model: str, name: str) -> None:
    """Paths of this machine are not part of the API."""
    assert Plan(Path("/data"), model, "127.0.0.1", 1).served_name == name


def test_both_children_end_with_the_supervisor_and_share_a_data_directory() -> None:
    """The engine listens on the socket that is probed and keeps the flags it was given."""
    plan = Plan(Path("/data"), "smollm2", "127.0.0.1", 1, ("--max-num-seqs", "2"))
    engine, gateway = commands(plan)
    for command in (engine, gateway):
        arguments = list(command.arguments)
        assert arguments[arguments.index("--parent") + 1] == str(os.getpid())
        assert arguments[arguments.index("--data-dir") + 1] == "/data"
    arguments = list(engine.arguments)
    socket = run_dir(plan.data) / record.ENGINE_SOCKET
    assert arguments[arguments.index("--uds") + 1] == str(socket)
    assert engine.health.path == socket
    assert arguments[-2:] == ["--max-num-seqs", "2"]


def test_one_supervisor_a_data_directory(tmp_path: Path) -> None:
    """A second one says so and changes nothing."""
    held = record.lock(tmp_path)
    assert held is not None
    with pytest.raises(AlreadyRunning, match=str(tmp_path)):
        run_supervisor(Plan(tmp_path, "smollm2", "127.0.0.1", 1))
    assert (run_dir(tmp_path) / record.LOCK_FILE).exists()
    record.release(tmp_path, held)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_supervisor_stops_all(tmp_path: Path, number: signal.Signals) -> None:
    """Whoever sends it, and whatever its children are doing: here one that cannot start."""
    command = [sys.executable, "-m", "bedplate.cli", "supervise", "/nowhere.gguf"]
    command += ["--data-dir", str(tmp_path), "--host", "127.0.0.1", "--port", str(free_port())]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        until(lambda: len(record.children(tmp_path)) == 2, "both children were started")
        process.send_signal(number)
        assert process.wait() == 0
    assert processes_of(tmp_path) == []
    assert run_files(tmp_path) <= {"engine.log", "gateway.log"}


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_status_that_cannot_be_written_is_no_fault_of_the_platform(tmp_path: Path) -> None:
    """A full disk, or a run folder that someone removed: the supervisor goes on."""
    publish(tmp_path, [])
    run_dir(tmp_path).mkdir()
    publish(tmp_path, [{"name": "engine"}])
    assert record.children(tmp_path) == [{"name": "engine"}]
