from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

from bedplate.cli.hardware import describe_hardware
from bedplate.hal.api import BackendMissing


def test_the_device_that_is_used_is_told_with_its_facts() -> None:
    """Name, memory, level and threads of the processor."""
    (line,) = [line for line in describe_hardware("cpu") if line.startswith("uses ")]
    assert line.startswith("uses cpu:0: ")
    assert " GiB, " in line
    assert line.endswith(" threads")


def test_a_backend_that_cannot_be_used_is_told_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its library is not there; what is asked for still is."""
    manifest = tmp_path / "gone.json"
    told = {
        "schema": "bedplate.hal-manifest/1",
        "name": "gone",
        "library": str(tmp_path / "bedplate_hal_gone.so"),
        "abi": "0.1",
        "isa": platform.machine(),
        "sha256": "0" * 64,
    }
    manifest.write_text(json.dumps(told))
    tmp_path.chmod(0o700)
    monkeypatch.setenv("BEDPLATE_HAL_BACKEND_FILES", str(manifest))
    lines = list(describe_hardware("cpu"))
    assert sum(line.startswith("uses cpu:0: ") for line in lines) == 1
    (gone,) = [line for line in lines if line.startswith("without gone: ")]
    assert "bedplate_hal_gone.so" in gone


def test_a_device_that_is_not_there_is_an_error() -> None:
    """Before anything starts."""
    with pytest.raises(BackendMissing):
        list(describe_hardware("tpu"))
