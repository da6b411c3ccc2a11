from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import bedplate

from bedplate.orchestrator.api import Platform

CHECKS = [
    "python",
    "packages",
    "native libraries",
    "data directory",
    "configuration",
    "backend cpu",
    "processor",
    "model",
    "memory",
    "port",
    "API key",
]


def test_a_running_platform_is_well(plate: Platform) -> None:
    """Every check in order, all OK, exit 0; the table and the JSON say the same."""
    done = bedplate("doctor", "--data-dir", plate.data, "--json")
    report = json.loads(done.stdout)
    assert report["schema"] == "bedplate.doctor/1"
    seen = [c["check"] for c in report["checks"]]
    known = [name for name in seen if not name.startswith("backend ") or name == "backend cpu"]
    assert known == [*CHECKS, "engine", "gateway", "platform"]
    assert not [c for c in report["checks"] if c["check"] in known and c["verdict"] != "OK"]
    absent = [c for c in report["checks"] if c["check"] not in known]
    assert all(c["verdict"] in ("OK", "NOT RUN") for c in absent)
    (port,) = [c["found"] for c in report["checks"] if c["check"] == "port"]
    assert port.startswith(f"{plate.url.rpartition(':')[2]} of 127.0.0.1, held by our own")
    table = bedplate("doctor", "--data-dir", plate.data).stdout
    for check in report["checks"]:
        assert check["check"] in table
        assert check["check"] == "memory" or check["found"].split(",")[0] in table


@pytest.mark.usefixtures("certified")
def test_problems_have_remedies_and_the_worst_decides(tmp_path: Path) -> None:
    """A wrong configuration is 1; a machine that lacks something is 3."""
    tmp_path.chmod(0o700)
    (tmp_path / "bedplate.toml").write_text("[gateway]\nprot = 1\n")
    wrong = bedplate("doctor", "--data-dir", tmp_path, "--json")
    assert wrong.returncode == 1
    checks = {c["check"]: c for c in json.loads(wrong.stdout)["checks"]}
    assert checks["configuration"]["remedy"] == "the nearest is 'port'"
    for name in ("model", "memory", "port"):
        assert checks[name]["verdict"] == "NOT RUN"
    assert checks["platform"]["remedy"] == f"`bedplate up --data-dir {tmp_path}` starts it"
    lacking = bedplate("doctor", "--data-dir", tmp_path, env={"BEDPLATE_CPU_ISA": "sse"})
    assert lacking.returncode == 3
    assert "PROBLEM   processor" in lacking.stdout
    assert lacking.stderr == ""
