"""Certificates: for which device they count, and what an uncertified device may do."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bedplate.hal import certificate
from bedplate.hal.api import Unsupported, open_device
from bedplate.hal.device import DeviceInfo, read_info
from bedplate.hal.loader import Backend
from bedplate.hal.open import load
from bedplate.hal.suite.registry import Case
from bedplate.hal.suite.run import CaseResult, select


@pytest.fixture
def backend() -> Backend:
    """cpu."""
    return load("cpu")


@pytest.fixture
def info(backend: Backend) -> DeviceInfo:
    """Its device."""
    return read_info(backend, 0)


def certified(backend: Backend, info: DeviceInfo, fails: str = "") -> dict[str, Any]:
    """A certificate on which every case passed but one."""
    cases = select(info.claims, "quick")
    results = [
        CaseResult(c.name, c.capability, "fail" if c.name == fails else "pass", None) for c in cases
    ]
    return certificate.make(backend, info, "quick", cases, results)


def passed(cases: Sequence[Case], command: Sequence[str], **_: Any) -> list[CaseResult]:
    """In place of a run: every case passes."""
    return [CaseResult(case.name, case.capability, "pass", None) for case in cases]


def test_it_is_found_again(backend: Backend, info: DeviceInfo, tmp_path: Path) -> None:
    """Stored privately, read as it was."""
    made = certified(backend, info)
    path = certificate.store(made, tmp_path / "certificates")
    assert certificate.find(backend, info, tmp_path / "certificates") == made
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert made["schema"] == "bedplate.certificate/1"
    assert made["capabilities"]["ops"]["verdict"] == "certified"
    assert made["capabilities"]["clusters"]["verdict"] == "not_claimed"


@pytest.mark.parametrize(
    "change",
    [
        {"driver": "cpu-2"},
        {"name": "another processor"},
        {"claims": frozenset({"ops"})},
        {"index": 1},
    ],
)
def test_it_counts_for_that_device_only(
    backend: Backend, info: DeviceInfo, tmp_path: Path, change: dict[str, Any]
) -> None:
    """Another driver, device, index or other claims have none."""
    certificate.store(certified(backend, info), tmp_path)
    assert certificate.find(backend, replace(info, **change), tmp_path) is None


def test_it_counts_for_that_file_and_suite_only(
    backend: Backend, info: DeviceInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new build or a new suite asks again."""
    certificate.store(certified(backend, info), tmp_path)
    monkeypatch.setattr(certificate, "SUITE_VERSION", "next")
    assert certificate.find(backend, info, tmp_path) is None
    monkeypatch.undo()
    assert certificate.find(backend, info, tmp_path) is not None
    monkeypatch.setattr(backend, "sha256", "0" * 64)
    assert certificate.find(backend, info, tmp_path) is None


@pytest.mark.parametrize("spoil", ["", "[]", "{}", '{"schema": "other/1"}', "capabilities", "key"])
def test_a_spoiled_file_is_none(
    backend: Backend, info: DeviceInfo, tmp_path: Path, spoil: str
) -> None:
    """Not JSON, another schema, parts missing, or a key that is not the file's name."""
    made = certified(backend, info)
    path = certificate.store(made, tmp_path)
    if spoil == "capabilities":
        spoil = json.dumps(made | {"capabilities": {"ops": 7}})
    elif spoil == "key":
        spoil = json.dumps(made | {"driver": "someone else's"})
    path.write_text(spoil)
    assert certificate.find(backend, info, tmp_path) is None


def test_a_failed_case_withdraws_that_capability_only(
    backend: Backend,
    info: DeviceInfo,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The device opens without it, and says so when it is asked for."""
    monkeypatch.setenv("BEDPLATE_DATA_DIR", str(tmp_path))
    made = certified(backend, info, fails="ops.convert_agrees_with_the_oracle")
    certificate.store(made)
    assert made["capabilities"]["ops"]["verdict"] == "withdrawn"
    with open_device("cpu") as device:
        assert device.info.claims - device.info.capabilities == {"ops"}
        with pytest.raises(Unsupported, match="no certified ops"):
            _ = device.ops
    with open_device("cpu", trust_claims=True) as device:
        assert device.info.capabilities == device.info.claims


def test_the_first_open_certifies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick tier runs once and is kept; the second open runs nothing."""
    monkeypatch.setenv("BEDPLATE_DATA_DIR", str(tmp_path))
    with open_device("cpu") as device:
        assert {"ops", "module_native", "host_visible"} <= device.info.capabilities
    (path,) = (tmp_path / "certificates").iterdir()
    assert json.loads(path.read_text())["tier"] == "quick"
    monkeypatch.setattr(certificate, "run", None)
    with open_device("cpu") as device:
        assert "ops" in device.info.capabilities


def test_a_suite_that_cannot_run_certifies_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device opens with its mandatory tables, and no certificate is written."""
    monkeypatch.setenv("BEDPLATE_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(certificate, "worker_command", lambda spec: ["false"])
    with open_device("cpu") as device:
        assert device.info.capabilities == frozenset()
        assert device.timeline(3).value == 3
    assert not (tmp_path / "certificates").exists()


def test_a_certificate_that_cannot_be_kept_still_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A data folder that cannot be made costs the next open, not this one."""
    monkeypatch.setattr(certificate, "run", passed)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BEDPLATE_DATA_DIR", str(tmp_path / "file"))
    with open_device("cpu") as device:
        assert "ops" in device.info.capabilities


def kept(backend: Backend, info: DeviceInfo, tmp_path: Path) -> Path:
    """A stored certificate that is found."""
    path = certificate.store(certified(backend, info), tmp_path / "certificates")
    assert certificate.find(backend, info, path.parent)
    return path


def test_one_that_others_could_have_written_is_none(
    backend: Backend, info: DeviceInfo, tmp_path: Path
) -> None:
    """It decides which code may be relied on, so it is held to the rules of what is loaded."""
    path = kept(backend, info, tmp_path)
    path.chmod(0o666)
    assert certificate.find(backend, info, path.parent) is None
    path.chmod(0o644)
    path.parent.chmod(0o777)
    assert certificate.find(backend, info, path.parent) is None
    path.parent.chmod(0o700)
    assert certificate.find(backend, info, path.parent)


def test_a_pipe_in_its_place_is_none(backend: Backend, info: DeviceInfo, tmp_path: Path) -> None:
    """Opening one would wait for ever."""
    path = kept(backend, info, tmp_path)
    path.unlink()
    os.mkfifo(path)
    assert certificate.find(backend, info, path.parent) is None


def test_one_of_endless_brackets_is_none(
    backend: Backend, info: DeviceInfo, tmp_path: Path
) -> None:
    """As deep as no parser goes."""
    path = kept(backend, info, tmp_path)
    path.write_text("[" * 100_000)
    assert certificate.find(backend, info, path.parent) is None


@pytest.mark.parametrize(
    ("key", "value"), [("tier", None), ("tier", 3), ("time_ns", None), ("time_ns", "now")]
)
def test_one_without_tier_or_time_is_none(
    backend: Backend, info: DeviceInfo, tmp_path: Path, key: str, value: object
) -> None:
    """`hal list` tells both of every certificate."""
    path = kept(backend, info, tmp_path)
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {key: value}))
    assert certificate.find(backend, info, path.parent) is None


def test_the_first_open_gives_up_on_a_device_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three cases that do not end are enough; someone waits for the device."""
    asked: dict[str, Any] = {}

    def told(cases: Sequence[Case], command: Sequence[str], **given: Any) -> list[CaseResult]:
        asked.update(given)
        return passed(cases, command)

    monkeypatch.setenv("BEDPLATE_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(certificate, "run", told)
    open_device("cpu").close()
    assert asked == {"most_hangs": 3}
