from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from tests.orchestrator.conftest import part, store_keys

from bedplate.core import keyfile
from bedplate.core.paths import run_dir
from bedplate.orchestrator import record
from bedplate.orchestrator.api import Platform
from bedplate.orchestrator.doctor.finding import Finding, Verdict
from bedplate.orchestrator.doctor.place import Place
from bedplate.orchestrator.supervisor import publish


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A data directory that does not exist yet."""
    return Place(tmp_path / "data")


def one(findings: object) -> Finding:
    """The only finding of a check."""
    (found,) = findings  # type: ignore[misc]
    assert isinstance(found, Finding)
    return found


def test_a_new_place_is_well(place: Place) -> None:
    """Nothing is there yet and nothing is wrong; looking makes nothing."""
    for check in (place.configuration, place.model, place.folder, place.key):
        assert one(check()).verdict is Verdict.OK
    assert "will be made" in one(place.folder()).found
    assert "first start makes one" in one(place.key()).found
    assert one(place.platform()).verdict is Verdict.NOT_RUN
    assert not place.data.exists()


def test_the_configuration_that_is_used_is_named(place: Place) -> None:
    """The data directory's own file is found; a wrong one is not configured."""
    place.data.mkdir()
    file = place.data / "bedplate.toml"
    file.write_text("[gateway]\nport = 9\n")
    assert str(file) in one(place.configuration()).found
    assert place.is_configured()
    file.write_text("[gateway]\nprot = 9\n")
    assert not place.is_configured()


def test_a_model_that_is_not_there_is_a_problem(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path of the configuration is the user's fault, a package the machine's lack."""
    monkeypatch.setenv("BEDPLATE_ORCHESTRATOR_MODEL", "/nowhere.gguf")
    found = one(place.model())
    assert (found.verdict, found.exit_code) == (Verdict.PROBLEM, 1)
    assert place.needed_bytes() == (None, "/nowhere.gguf")
    monkeypatch.delenv("BEDPLATE_ORCHESTRATOR_MODEL")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = one(place.model())
    assert (found.verdict, found.exit_code) == (Verdict.PROBLEM, 3)
    assert "pip install" in found.remedy


def test_a_model_with_another_hash_is_a_problem(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package is there, its file was changed."""
    monkeypatch.setattr("bedplate.serving.packaged._sha256", lambda path: "0" * 64)
    found = one(place.model())
    assert (found.verdict, found.exit_code) == (Verdict.PROBLEM, 1)
    assert "expected hash" in found.found


def test_the_need_grows_with_the_model_and_its_context(
    place: Place, tiny_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys and values of 2 layers of 2 heads of 16, bf16: 256 bytes a token."""
    monkeypatch.setenv("BEDPLATE_ORCHESTRATOR_MODEL", str(tiny_file))
    whole, name = place.needed_bytes()
    assert name == str(tiny_file)
    monkeypatch.setenv("BEDPLATE_SERVING_MAX_MODEL_LEN", "1000")
    short, _ = place.needed_bytes()
    assert whole is not None
    assert short is not None
    assert whole - short == (8192 - 1000) * 256


@pytest.mark.parametrize(
    ("data", "exit_code", "text"),
    [
        ("/proc", 3, "no permission"),
        ("/proc/x", 3, "cannot be made"),
        ("/etc/passwd", 1, "no folder"),
    ],
)
def test_a_data_directory_that_cannot_be_used_is_a_problem(
    data: str, exit_code: int, text: str
) -> None:
    """Forbidden by the machine, or not a folder."""
    found = one(Place(Path(data)).folder())
    assert (found.verdict, found.exit_code) == (Verdict.PROBLEM, exit_code)
    assert text.replace("no folder", "not a folder") in found.found
    assert "--data-dir" in found.remedy


def test_a_data_directory_that_others_may_read_is_a_problem(place: Place) -> None:
    """It holds keys; the remedy is the command to run."""
    place.data.mkdir()
    place.data.chmod(0o755)
    found = one(place.folder())
    assert (found.verdict, found.exit_code) == (Verdict.PROBLEM, 1)
    assert found.remedy == f"run `chmod 700 {place.data}`"
    place.data.chmod(0o700)
    assert one(place.folder()).verdict is Verdict.OK


def test_a_taken_port_is_a_problem_our_own_is_not(
    place: Place, plate: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Free, held by somebody, held by the platform of this data directory."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        monkeypatch.setenv("BEDPLATE_GATEWAY_PORT", str(port))
        taken.listen()
        found = one(place.port())
        assert (found.verdict, found.exit_code) == (Verdict.PROBLEM, 3)
        assert "--port" in found.remedy
    assert one(place.port()).verdict is Verdict.OK
    monkeypatch.setenv("BEDPLATE_GATEWAY_PORT", plate.url.rpartition(":")[2])
    assert one(place.port()).verdict is Verdict.PROBLEM
    own = one(Place(plate.data).port())
    assert own.verdict is Verdict.OK
    assert "our own platform" in own.found


def test_keys_are_counted_not_shown(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stored, none, from the environment."""
    keys = store_keys(place.data, "one", "two")
    found = one(place.key())
    assert found.found == "2 stored: one, two"
    assert not any(key in found.found for key in keys)
    keyfile.write(place.data / keyfile.FILE, {})
    assert one(place.key()).exit_code == 1
    monkeypatch.setenv("BEDPLATE_API_KEY", "x")
    assert one(place.key()).found == "from BEDPLATE_API_KEY"


def test_a_running_platform_is_looked_at_part_by_part(plate: Platform) -> None:
    """Both parts and the answer itself."""
    findings = {f.check: f for f in Place(plate.data).platform()}
    assert {name: f.verdict for name, f in findings.items()} == {
        "engine": Verdict.OK,
        "gateway": Verdict.OK,
        "platform": Verdict.OK,
    }
    assert f"process {part(plate, 'engine').pid}" in findings["engine"].found


KILLED = "it was ended by SIGKILL"


@pytest.mark.parametrize(
    ("changes", "exit_code", "told"),
    [
        ({"state": "starting", "reason": ""}, 1, "starting: loading"),
        ({"state": "restarting", "reason": KILLED}, 1, f"restarting: {KILLED}"),
        ({"restarts": 1, "last_end": KILLED}, 0, f"again once, the last time since {KILLED}"),
        ({"restarts": 2, "last_end": KILLED}, 0, f"again 2 times, the last time since {KILLED}"),
    ],
)
def test_a_part_that_is_not_ready_is_a_problem(
    place: Place, changes: dict[str, object], exit_code: int, told: str
) -> None:
    """Its state and reason, and where to read on; after it is back its end is still told."""
    run_dir(place.data).mkdir(parents=True)
    ticks = record.start_ticks(os.getpid())
    assert ticks is not None
    url = "http://127.0.0.1:9"
    record.write(place.data, record.Record(record.SCHEMA, os.getpid(), ticks, url, "m", 0))
    engine = {"name": "engine", "state": "ready", "reason": "", "pid": 7, "restarts": 0, **changes}
    publish(place.data, [engine])
    found, answer = place.platform()
    assert (found.check, found.exit_code) == ("engine", exit_code)
    assert told in found.found
    if exit_code:
        assert f"`bedplate status --data-dir {place.data}`" in found.remedy
    assert (answer.check, answer.exit_code) == ("platform", 1)
    assert url in answer.found
