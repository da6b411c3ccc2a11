"""The comparison with a GPU finds a wrong bit; the machine itself stands in for the GPU."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.simt import device, fuzz, patterns, tuples

from bedplate.simt.api import Machine

PTXAS = shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"


ONLY = {"ex2", "subc", "redux", "mma"}


class Standin:
    """The driver's calls, made to the software GPU."""

    name = "stand-in"

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def load(self, text: str) -> Any:
        return self.machine.load(text)

    def unload(self, module: Any) -> None:
        del module

    def allocate(self, size: int) -> int:
        return self.machine.memory.allocate(size)

    def write(self, address: int, data: np.ndarray) -> None:
        view = self.machine.memory.view(address, data.nbytes)
        assert view is not None
        view[:] = np.ascontiguousarray(data).view(np.uint8)

    def read(self, address: int, count: int, dtype: Any) -> np.ndarray:
        view = self.machine.memory.view(address, count * np.dtype(dtype).itemsize)
        assert view is not None
        copied: np.ndarray = view.view(dtype).copy()
        return copied

    def launch(self, module: Any, name: str, grid: int, block: int, values: list[int]) -> None:
        module[name][grid, block](*map(np.uint64, values))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Few forms with few tuples, and no assembler."""
    monkeypatch.setattr(fuzz, "refused", lambda texts, ptxas: {})
    monkeypatch.setattr(tuples, "MOST", 2 * tuples.CHUNK)
    tuples.operand.cache_clear()
    monkeypatch.setattr(fuzz, "FORM_TUPLES", 2 * tuples.CHUNK)
    monkeypatch.setattr(fuzz, "OPCODE_TUPLES", 2 * tuples.CHUNK)
    assert fuzz.generate(tmp_path, ONLY, Path(PTXAS)) == 0
    yield tmp_path
    tuples.operand.cache_clear()


def _run(folder: Path) -> dict[str, int]:
    with Machine(threads=1, memory=512 << 20) as machine:
        cuda: Any = Standin(machine)
        return device.fuzz(cuda, folder, folder, 1000)


@pytest.mark.soak
def test_equal_results_are_equal(folder: Path) -> None:
    """Each form has a verdict, and approximate ones a bound."""
    counted = _run(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert set(counted) == {"equal", "within"}
    assert counted["within"] == 3
    assert sum(counted.values()) == len(manifest["forms"])
    manifest["tree"] = {"commit": "1" * 40, "dirty": False}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    device.keep(folder / "results.json", folder, folder, "cuda-13.0", False)
    (record,) = json.loads((folder / "results.json").read_text())["results"]
    assert record["value"] == record["goal"] == len(manifest["forms"])
    assert record["commit"] == "1" * 40
    assert record["device"]["name"] == "stand-in"


def test_one_flipped_bit_is_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The form, its operands and both results are told."""
    read, wrong = Standin.read, tuples.CHUNK + 77
    told = json.loads((folder / "manifest.json").read_text())["forms"]
    name = "redux.sync.xor.b32"
    symbol = next(form["symbol"] for form in told if form["name"] == name)
    latest = []
    launch = Standin.launch

    def launched(self: Standin, module: Any, kernel: str, *rest: Any) -> None:
        latest.append(kernel)
        launch(self, module, kernel, *rest)

    def flipped(self: Standin, address: int, count: int, dtype: Any) -> np.ndarray:
        result = read(self, address, count, dtype)
        if latest[-1] == symbol:
            result[wrong] ^= 1
        return result

    monkeypatch.setattr(Standin, "launch", launched)
    monkeypatch.setattr(Standin, "read", flipped)
    assert _run(folder)["differs"] == 1
    fuzz.compare(folder, folder / "raw.npz")
    said = capsys.readouterr().out
    assert "redux.sync.xor.b32 result 0: 1 of 4096 tuples of chunk 1" in said
    assert f"{int(tuples.operand('b32', 0)[wrong]):#x}" in said


def test_only_a_payload_differs() -> None:
    """A NaN of another pattern is a verdict of its own."""
    one = np.array([0x7FFFFFFF, 0x3F800000], np.uint32)
    other = np.array([0xFFC12345, 0x3F800000], np.uint32)
    assert tuples.digests(one) != tuples.digests(other)
    same = [tuples.digests(tuples.without_payloads(bits, "f32")) for bits in (one, other)]
    assert same[0] == same[1]


def test_an_approximation_outside_its_bound_is_found() -> None:
    """Three units in the last place are more than rcp may be off."""
    told = {"name": "rcp.approx.f32", "inputs": ["f32"], "divides": False, "count": 4096}
    values = tuples.inputs(told)[0].view(np.float32)
    with np.errstate(all="ignore"):
        right = (1 / values).astype(np.float32).view(np.uint32)
    assert device.bound(told, right)[0] == "within"
    normal = int(np.argmax((np.abs(values) > 1.1) & (np.abs(values) < 4)))
    right[normal] += 3
    assert device.bound(told, right)[0] == "outside"


@pytest.mark.soak
def test_patterns_against_a_table_of_the_profiler(tmp_path: Path) -> None:
    """Rows of ncu's CSV are read, and one count that is off is found."""
    patterns.generate(tmp_path)
    ours = json.loads((tmp_path / "patterns.json").read_text())
    assert len(ours) >= 30
    assert list(ours["shared_ld_v4_stride128"].values()) == [32, 28]
    lines = ["==PROF== Connected", '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"']
    lines += [
        f'"0","{kernel}","{name}","","{value:,}"'
        for kernel, counts in ours.items()
        for name, value in counts.items()
    ]
    assert all(row["equal"] for row in patterns.judged(ours, patterns.read("\n".join(lines))))
    lines[2] = lines[2].replace('"1"', '"2"')
    rows = patterns.judged(ours, patterns.read("\n".join(lines)))
    assert sum(not row["equal"] for row in rows) == 1
