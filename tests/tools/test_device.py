"""`make device` runs every step, and says NOT RUN rather than nothing."""

from __future__ import annotations

from pathlib import Path

import device
import pytest


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A root with the driver node of an NVIDIA device."""
    place = tmp_path / device.NVIDIA
    place.parent.mkdir()
    place.touch()
    return tmp_path


def test_without_an_accelerator_nothing_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 3, with the reason."""
    monkeypatch.setattr(device, "suite", lambda *_: pytest.fail("it ran"))
    assert device.main([], tmp_path) == 3
    assert "NOT RUN: no accelerator" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("codes", "wanted"), [((0, 0, 0), 0), ((0, 3, 0), 3), ((3, 1, 3), 1), ((0, -11, 3), 1)]
)
def test_a_failure_says_more_than_not_run(codes: tuple[int, ...], wanted: int) -> None:
    """And a step that was killed is a failure."""
    assert device.verdict(codes) == wanted


def test_a_failed_step_does_not_stop_the_next(
    node: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each writes its own file, named after the day and the device."""
    given: list[Path] = []
    monkeypatch.setattr(device, "tests", lambda: 1)
    monkeypatch.setattr(device, "device_name", lambda: "h200")
    monkeypatch.setattr(device, "conform", lambda out: given.append(out) or 3)
    monkeypatch.setattr(device, "benchmark", lambda name, out, quick: given.append(out) or 0)
    monkeypatch.setattr(device, "beside", lambda out: given.append(out) or 0)
    assert device.main(["--out", str(node)], node) == 1
    certificate, results, *others = given
    assert others == [results, results]
    assert certificate.parent == node / "certificates"
    assert certificate.name.endswith("-h200-cuda.json")
    assert results.parent == node / "results"
    assert results.name.endswith("-h200.json")
    told = capsys.readouterr().out
    assert [word for word in ("FAILED", "NOT RUN", "passed") if word in told] == [
        "FAILED",
        "NOT RUN",
        "passed",
    ]


def test_without_a_cuda_device_the_rest_is_not_run(
    node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node of a driver proves no device."""
    monkeypatch.setattr(device, "tests", lambda: 0)
    monkeypatch.setattr(device, "device_name", lambda: None)
    assert device.main(["--out", str(node)], node) == 3


def test_forms_of_the_software_gpu_are_made_or_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without LLVM the ones that were carried are run, and without those nothing."""
    ran: list[str] = []
    monkeypatch.setattr(device, "ROOT", tmp_path)
    monkeypatch.setattr(device, "run", lambda words: ran.append(words[1]) or 0)
    monkeypatch.setattr(device, "find_spec", lambda name: None)
    assert device.beside(tmp_path / "out" / "r.json") == 3
    assert "NOT RUN: there is no llvmlite" in capsys.readouterr().err
    folder = tmp_path / "build" / "simt-device"
    folder.mkdir(parents=True)
    for name in ("manifest.json", "expected.npz"):
        (folder / name).touch()
    assert device.beside(tmp_path / "out" / "r.json") == 0
    assert ran == ["benchmarks.simt.device"]
    monkeypatch.setattr(device, "find_spec", lambda name: object())
    monkeypatch.setattr(device.shutil, "which", lambda name: str(folder / "manifest.json"))
    assert device.beside(tmp_path / "out" / "r.json") == 0
    assert ran[1:] == ["benchmarks.simt.fuzz", "benchmarks.simt.patterns", "benchmarks.simt.device"]
