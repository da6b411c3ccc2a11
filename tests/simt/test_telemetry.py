"""Counters of a machine: what each counts, that none falls, and threads."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from bedplate.simt.api import LaunchFailed, Machine
from bedplate.simt.telemetry import NAMES, Counters

KERNELS = Path(__file__).parent / "kernels"


def test_each_counter_counts_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By name, after each thing that a machine does; all are whole numbers and none falls."""
    monkeypatch.setenv("BEDPLATE_CACHE_DIR", str(tmp_path))
    text = (KERNELS / "print.sm_90a.ptx").read_text()
    wanted = dict.fromkeys(NAMES, 0)

    def became(machine: Machine, **changes: int) -> None:
        found = dict(machine.telemetry())
        busy = found.pop("busy_ns")
        assert busy >= wanted.pop("busy_ns")
        for name, change in changes.items():
            wanted[name] += change
        assert found == wanted
        assert all(type(value) is int for value in found.values())
        wanted["busy_ns"] = busy

    with Machine(threads=1, memory=1 << 20, printf=5) as machine:
        became(machine)
        kernel = machine.load(text)["many"]
        loaded = machine.telemetry()
        became(machine, **{n: loaded[n] for n in ("allocations", "allocated_bytes")})
        data = machine.array(np.zeros(100, np.uint8))
        became(machine, allocations=1, allocated_bytes=100)
        data.free()
        became(machine, freed_bytes=100)
        kernel[2, 3](np.int32(1))
        became(
            machine,
            launches=1,
            blocks=2,
            threads=6,
            kernels_compiled=1,
            printf_calls=6,
            printf_lost=1,
        )
        assert wanted["busy_ns"] > 0
        kernel[1, 2](np.int32(0))
        became(machine, launches=1, blocks=1, threads=2)
        kernel[1, 2](np.int32(0), profile=True)
        became(machine, launches=1, blocks=1, threads=2, kernels_compiled=1)
        with pytest.raises(LaunchFailed):
            machine.load(text)["say"][1, 1](0, 1.0)
        found = machine.telemetry()
        assert found["launches_failed"] == 1
        assert (found["launches"], found["blocks"]) == (4, 4)
    with Machine(threads=1, memory=1 << 20) as machine:
        machine.load(text)["many"][2, 3](np.int32(1))
        found = machine.telemetry()
        assert (found["kernels_compiled"], found["kernels_from_disk"]) == (0, 1)


def test_a_reading_is_a_copy_and_no_addition_is_lost() -> None:
    """From several threads at once; what a reader has does not change."""
    counters = Counters()
    before = counters.read()

    def add() -> None:
        for _ in range(2000):
            counters.add(launches=1, blocks=3)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert before["launches"] == 0
    assert (counters.read()["launches"], counters.read()["blocks"]) == (8000, 24000)


@pytest.mark.parametrize("wrong", [{"launches": -1}, {"nothing": 1}])
def test_what_no_counter_can_take_is_an_error(wrong: dict[str, int]) -> None:
    """A fall, or a name that is none; nothing is added then."""
    counters = Counters()
    with pytest.raises(ValueError, match="no counter can take"):
        counters.add(blocks=1, **wrong)
    assert not any(counters.read().values())
