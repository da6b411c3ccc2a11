from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from bedplate.orchestrator.doctor import machine
from bedplate.orchestrator.doctor.finding import Finding, Verdict


def one(findings: object) -> Finding:
    """The only finding of a check."""
    (found,) = findings  # type: ignore[misc]
    assert isinstance(found, Finding)
    return found


def test_this_machine_is_well() -> None:
    """Python, packages, native code, backends and processor of the tests' own environment."""
    for check in (machine.python, machine.packages, machine.native_libraries, machine.processor):
        found = one(check())
        assert (found.verdict, found.remedy, found.exit_code) == (Verdict.OK, "", 0), found
    assert {f.check: f.verdict for f in machine.backends()}["backend cpu"] is Verdict.OK


def test_an_old_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the oldest that works; the machine lacks it."""
    monkeypatch.setattr(machine, "OLDEST_PYTHON", (4, 0))
    found = one(machine.python())
    assert (found.verdict, found.exit_code) == (Verdict.PROBLEM, 3)
    assert "4.0" in found.remedy


def test_missing_and_old_packages_are_named() -> None:
    """Each with what is there and what is needed."""
    found = one(machine.packages(["numpy>=1.0", "numpy>=999.1", "no-such-package>=1", "odd"]))
    assert (found.verdict, found.exit_code) == (Verdict.PROBLEM, 3)
    assert "below 999.1" in found.found
    assert "no-such-package is not installed" in found.found
    assert "'odd' is not understood" in found.found
    assert found.found.count(";") == 2


def test_versions_are_compared_by_number() -> None:
    """10 is above 9."""
    assert machine._numbers("10.0.1") > machine._numbers("9.9")


def test_missing_native_libraries_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that lack, in one line."""
    (tmp_path / "libbedplate_hal.so").touch()
    monkeypatch.setattr(machine, "native_library_dir", lambda: tmp_path)
    found = one(machine.native_libraries())
    assert (found.verdict, found.exit_code) == (Verdict.PROBLEM, 3)
    assert "libbedplate_serving.so, bedplate_hal_probe missing" in found.found


def test_a_refused_backend_is_a_problem_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A manifest that lies in the user's folder and is no manifest."""
    folder = tmp_path / "hal.d"
    folder.mkdir(mode=0o700)
    (folder / "odd.json").write_text("{")
    monkeypatch.setenv("BEDPLATE_DATA_DIR", str(tmp_path))
    findings = {f.check: f for f in machine.backends()}
    bad = findings["backend odd.json"]
    assert (bad.verdict, bad.exit_code) == (Verdict.PROBLEM, 1)
    assert str(folder / "odd.json") in bad.remedy
    assert findings["backend cpu"].verdict is Verdict.OK


def test_a_backend_without_its_device_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the reason; a machine without it is not a broken one."""
    reason = "there is no driver here"
    away = SimpleNamespace(backend="acme", verdict="unavailable", reason=reason)
    monkeypatch.setattr(machine, "examine", lambda: [away])
    found = one(machine.backends())
    assert (found.check, found.verdict, found.exit_code) == ("backend acme", Verdict.NOT_RUN, 0)
    assert found.found == reason


def test_a_level_that_the_processor_lacks_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """BEDPLATE_CPU_ISA is to be unset; a lower level is fine but told."""
    monkeypatch.setenv("BEDPLATE_CPU_ISA", "sse")
    found = one(machine.processor())
    assert (found.verdict, found.exit_code) == (Verdict.PROBLEM, 3)
    assert "BEDPLATE_CPU_ISA=sse" in found.found
    assert "BEDPLATE_CPU_ISA" in found.remedy
    monkeypatch.setenv("BEDPLATE_CPU_ISA", "generic")
    found = one(machine.processor())
    assert found.verdict is Verdict.OK
    assert "level generic" in found.found


def test_more_threads_than_cores_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would wait for each other."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    monkeypatch.setenv("BEDPLATE_HAL_CPU_THREADS", "2")
    found = one(machine.processor())
    assert (found.verdict, found.exit_code) == (Verdict.PROBLEM, 1)
    assert "at most 1" in found.remedy


def test_memory_is_compared_with_the_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough, just enough, too little, unknown."""
    with monkeypatch.context() as patch:
        patch.setattr(machine, "available_bytes", lambda: 1000)
        assert one(machine.memory(1000, "m")).verdict is Verdict.OK
        assert one(machine.memory(1001, "m")).verdict is Verdict.PROBLEM
    assert one(machine.memory(1, "m")).verdict is Verdict.OK
    little = one(machine.memory(1 << 60, "m"))
    assert (little.verdict, little.exit_code) == (Verdict.PROBLEM, 3)
    unknown = one(machine.memory(None, "m"))
    assert (unknown.verdict, unknown.exit_code) == (Verdict.NOT_RUN, 0)


@pytest.mark.parametrize(
    ("limit", "used", "free"),
    [(None, None, 2048), ("max", "0", 2048), ("1500", "500", 1000), ("100", "200", 0)],
)
def test_a_control_groups_limit_counts(
    tmp_path: Path, limit: str | None, used: str | None, free: int
) -> None:
    """What the kernel has free is not all ours in a container."""
    proc, cgroup = tmp_path / "proc", tmp_path / "cgroup"
    proc.mkdir()
    cgroup.mkdir()
    (proc / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:       2 kB\nBuffers: 1 kB\n")
    if limit is not None and used is not None:
        (cgroup / "memory.max").write_text(limit + "\n")
        (cgroup / "memory.current").write_text(used + "\n")
    assert machine.available_bytes(proc, cgroup) == free
    assert machine.available_bytes(tmp_path, cgroup) is None
