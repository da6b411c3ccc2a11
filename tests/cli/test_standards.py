"""`bedplate standards check`: a table of verdicts, findings, and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bedplate.cli.main import main

ROOT = Path(__file__).parents[2]


def test_our_tree_keeps_the_runtime_contract(capsys: pytest.CaptureFixture[str]) -> None:
    """Passed, with the incident that it prevents."""
    assert main(["standards", "check", str(ROOT), "--gate", "runtime_contract"]) == 0
    out = capsys.readouterr().out
    assert "PASSED" in out
    assert "runs out of memory" in out
    assert "gate runtime_contract" not in out


def test_a_violation_is_1_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """File, line, what to do; the same as JSON."""
    engine = tmp_path / "native" / "serving"
    engine.mkdir(parents=True)
    (engine / "step.cu").write_text("cudaDeviceSynchronize();\n")
    words = ["standards", "check", str(tmp_path), "--gate", "runtime_contract"]
    assert main(words) == 1
    out = capsys.readouterr().out
    assert "native/serving/step.cu:1" in out
    assert main([*words, "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["verdicts"][0]["result"]["verdict"] == "failed"


def test_a_part_that_is_not_run_is_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Beside one that passed too, with what to do; a bad standards.toml is 2."""
    engine = tmp_path / "native" / "serving"
    engine.mkdir(parents=True)
    (engine / "step.cu").write_text("int x;\n")
    assert main(["standards", "check", str(tmp_path)]) == 3
    out = capsys.readouterr().out
    assert "PASSED" in out
    assert "NOT RUN" in out
    assert "with --gate" in out
    assert main(["standards", "check", str(tmp_path), "--gate", "runtime_contract"]) == 0
    (tmp_path / "standards.toml").write_text("[runtime_contract]\nfolder = []\n")
    assert main(["standards", "check", str(tmp_path)]) == 2
    assert "standards.toml, runtime_contract.folder: unknown key" in capsys.readouterr().err


def test_nothing_that_could_run_is_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """NOT RUN with the reason; an unknown gate and a missing tree are 2."""
    assert main(["standards", "check", str(tmp_path)]) == 3
    assert "NOT RUN" in capsys.readouterr().out
    assert main(["standards", "check", str(tmp_path), "--gate", "x"]) == 2
    assert main(["standards", "check", str(tmp_path / "none")]) == 2
    assert "no folder" in capsys.readouterr().err
