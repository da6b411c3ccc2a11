"""The labs: each kernel's result, and the number that it is there to show."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.simt.conftest import sliced

from bedplate.simt.api import (
    LaunchFailed,
    Machine,
    Reference,
    argument_value,
    check,
    read_request,
)
from bedplate.simt.tally import Tally

ROOT = Path(__file__).resolve().parents[2]
LABS = ROOT / "examples" / "simt"
Arrays = list[Any]
Right = Callable[[Arrays], Any]
"""From the arguments before the launch to what argument 0 (of a lock: 1) is then."""


def summed(arrays: Arrays) -> Any:
    """The sum of each block's 256 values."""
    return arrays[1].reshape(4, 256).sum(axis=1)


def atomic_sum(arrays: Arrays) -> Any:
    """All of them in the first place."""
    return [arrays[1].sum(), 0, 0, 0]


def counted(arrays: Arrays) -> Any:
    """How often each byte is there."""
    return np.bincount(arrays[1], minlength=256)


def smoothed(arrays: Arrays) -> Any:
    """The mean of seven neighbours, zeros outside."""
    return np.convolve(arrays[1], np.ones(7) / 7, "same")


def product(arrays: Arrays) -> Any:
    """In double precision."""
    return arrays[1].astype("f8") @ arrays[2].astype("f8")


def tile_product(arrays: Arrays) -> Any:
    """The second matrix lies by columns."""
    return arrays[1].astype("f8") @ arrays[2].astype("f8").T


def climbed(way: Callable[[Any], Any], arrays: Arrays) -> Any:
    """Eight functions of the thread's number, chosen by another."""
    x = np.arange(512.0)
    ways = [x + 1, x * 2, x - 3, x * x, x * x + 5, 6 - x, x * 7, np.full(512, 8.0)]
    return np.choose(way(np.arange(512)), ways)


def added(first: int, arrays: Arrays) -> Any:
    """The sum of two arrays, from an element on."""
    both = arrays[1] + arrays[2]
    both[:first] = 0
    return both


def transposed(arrays: Arrays) -> Any:
    """Rows as columns."""
    return arrays[1].T


def running(arrays: Arrays) -> Any:
    """Sums of all up to here."""
    return np.cumsum(arrays[1])


def everywhere(arrays: Arrays) -> Any:
    """One sum in all lanes."""
    return np.full(32, arrays[1].sum())


def turned(arrays: Arrays) -> Any:
    """The last first."""
    return arrays[1][::-1]


KERNELS: dict[str, tuple[Right, dict[str, Any]]] = {
    "vector_add/add": (partial(added, 0), {"sectors_per_request": 4.0}),
    "vector_add/add_moved": (partial(added, 1), {"sectors": 477, "requests": 96}),
    "vector_add/add_strided": (partial(added, 0), {"sectors_per_request": 32.0}),
    "branch_ladder/by_lane": (
        partial(climbed, lambda i: i % 8),
        {"divergent": 16 * 7, "issues": 864, "lanes": 12480},
    ),
    "branch_ladder/by_warp": (
        partial(climbed, lambda i: i // 32 % 8),
        {"divergent": 0, "lane_efficiency": 1.0},
    ),
    "reduction/divergent": (summed, {"divergent": 192, "conflicts": 0}),
    "reduction/conflicting": (summed, {"divergent": 24, "conflicts": 420}),
    "reduction/sequential": (summed, {"divergent": 24, "conflicts": 0, "wavefronts": 180}),
    "reduction/shuffled": (summed, {"wavefronts": 36}),
    "reduction/atomic": (atomic_sum, {"wavefronts": 0, "divergent": 0, "sectors": 160}),
    "transpose/plain": (transposed, {"sectors_per_request": 18.0}),
    "transpose/tile": (transposed, {"sectors_per_request": 4.0, "conflicts": 128 * 31}),
    "transpose/padded": (transposed, {"sectors_per_request": 4.0, "conflicts": 0}),
    "histogram/global_table": (counted, {"requests": 1024, "shared_requests": 0}),
    "histogram/shared_table": (counted, {"requests": 544, "sectors": 640}),
    "scan/doubling": (running, {"conflicts": 0, "issues": 594}),
    "scan/tree": (running, {"conflicts": 201}),
    "scan/by_warps": (running, {"conflicts": 0, "wavefronts": 36}),
    "stencil/plain": (smoothed, {"sectors": 1210}),
    "stencil/tiled": (smoothed, {"sectors": 270}),
    "matmul/naive": (product, {"sectors": 4224}),
    "matmul/tiled": (product, {"sectors": 640, "conflicts": 0}),
    "spin_lock/count": (lambda _: [32], {"divergent": 31}),
    "spin_lock/count_safely": (lambda _: [32], {"divergent": 62}),
    "warp_shuffle/through_memory": (everywhere, {"wavefronts": 17, "issues": 57}),
    "warp_shuffle/through_registers": (everywhere, {"wavefronts": 0, "issues": 28}),
    "mma/tensor": (tile_product, {"issues": 46}),
    "mma/scalar": (tile_product, {"issues": 562}),
    "missing_barrier/reversed": (turned, {"conflicts": 0}),
}


def prepared(machine: Machine, name: str) -> tuple[Any, Any, Arrays]:
    """A kernel with its launch and arguments, as its folder says."""
    lab, _, kernel = name.partition("/")
    request = read_request(LABS / lab / "launch.toml")
    path = LABS / lab / f"{lab}.ptx"
    made = machine.load(path.read_text(), str(path))[kernel]
    values = [argument_value(machine, text, request.folder) for text in request.args]
    return made, request, values


def first_of_each() -> list[Any]:
    """One kernel of each lab; the others in `make soak`."""
    seen: set[str] = set()
    names: list[Any] = []
    for name in KERNELS:
        lab = name.partition("/")[0]
        names.append(pytest.param(name, marks=pytest.mark.soak) if lab in seen else name)
        seen.add(lab)
    return names


@pytest.mark.parametrize("name", first_of_each())
def test_a_lab(machine: Machine, name: str) -> None:
    """Right as numpy says, with the numbers of the lesson."""
    right, lesson = KERNELS[name]
    kernel, request, values = prepared(machine, name)
    before = [value.numpy() if hasattr(value, "numpy") else value for value in values]
    report = kernel.launch(request.grid, request.block, values, profile=True).report
    result = values[1 if name.startswith("spin") else 0].numpy()
    np.testing.assert_allclose(result, right(before), rtol=1e-5)
    found = {key: getattr(report if hasattr(report, key) else report.total, key) for key in lesson}
    assert found == lesson


@pytest.mark.parametrize("name", sliced(KERNELS, 12))
def test_the_reference_agrees_on_a_lab(machine: Machine, name: str) -> None:
    """It has the same bits and the same counts."""
    kernel, request, values = prepared(machine, name)
    before = [value.numpy() if hasattr(value, "numpy") else value for value in values]
    report = kernel.launch(request.grid, request.block, values, profile=True).report
    again = [machine.array(old) if hasattr(old, "shape") and old.shape else old for old in before]
    tally = Tally()
    Reference(kernel, request.grid, request.block, again).run(tally)
    place = 1 if name.startswith("spin") else 0
    assert again[place].numpy().tobytes() == values[place].numpy().tobytes()
    counts = {number: count for number, count in report.counts.items() if count.issues}
    assert counts == tally.counts


def test_the_lock_stops_under_one_stack() -> None:
    """The lock that each lane holds for a while never comes back; the other one does."""
    with Machine(threads=1, memory=1 << 20, schedule="ipdom") as machine:
        kernel, request, values = prepared(machine, "spin_lock/count")
        with pytest.raises(LaunchFailed, match=r"SIMT deadlock.*spin_lock.cu:\d+"):
            kernel.launch(request.grid, request.block, values)
        kernel, request, values = prepared(machine, "spin_lock/count_safely")
        kernel.launch(request.grid, request.block, values)
        assert values[1].numpy().tolist() == [32]


def test_the_missing_barrier_is_found(machine: Machine) -> None:
    """Both lines of it; with the barrier there is nothing."""
    kernel, request, values = prepared(machine, "missing_barrier/reversed_by_luck")
    found = check(kernel, request.grid, request.block, values).findings
    races = [one for one in found if one.check == "race" and one.kind == "warps"]
    text = (LABS / "missing_barrier" / "missing_barrier.cu").read_text().splitlines()
    lines = {site.line for race in races for site in (race.site, race.other) if site is not None}
    start = text.index('extern "C" __global__ void reversed_by_luck(int *out, const int *in) {')
    wanted = {n for n, line in enumerate(text, 1) if n > start and "part[t] =" in line}
    wanted |= {n for n, line in enumerate(text, 1) if n > start and "part[63" in line}
    assert lines == wanted
    kernel, request, values = prepared(machine, "missing_barrier/reversed")
    assert not check(kernel, request.grid, request.block, values).findings


def test_every_lab_is_tried() -> None:
    """Its folder has a source, a launch and PTX; no kernel of it is forgotten."""
    tried: dict[str, set[str]] = {}
    for name in (*KERNELS, "missing_barrier/reversed_by_luck"):
        lab, _, kernel = name.partition("/")
        tried.setdefault(lab, set()).add(kernel)
    folders = sorted(path for path in LABS.iterdir() if path.is_dir())
    assert len(folders) == 12
    with Machine(threads=1, memory=1 << 20) as machine:
        for folder in folders:
            assert (folder / f"{folder.name}.cu").is_file()
            text = (folder / f"{folder.name}.ptx").read_text()
            assert set(machine.load(text)) == tried[folder.name]
            assert read_request(folder / "launch.toml").kernel in tried[folder.name]
