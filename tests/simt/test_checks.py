"""Checks name the line of every seeded bug, and say nothing about kernels without one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.simt.conftest import sliced

from bedplate.simt.api import (
    Checked,
    Finding,
    Kernel,
    LaunchInvalid,
    LoadedModule,
    Machine,
    check,
    check_junit,
    check_sarif,
    checks_of,
)
from bedplate.simt.checks import check as checks
from bedplate.simt.checks.log import EventLog

KERNELS = Path(__file__).parent / "kernels"
PREFIXES = {"GUARDED": "guard_", "STRIDED": "stride_"}
"""Of macros that are used with a LAUNCH comment."""


def told(source: str) -> tuple[dict[str, tuple[str, int]], dict[str, tuple[int, int]]]:
    """What the comments of a source say: the bug of each kernel with its line, launches."""
    bugs: dict[str, tuple[str, int]] = {}
    launches: dict[str, tuple[int, int]] = {}
    name = ""
    for number, line in enumerate((KERNELS / source).read_text().splitlines(), 1):
        if begins := re.match(r"([A-Z_]+)\((\w+)", line):
            name = PREFIXES.get(begins[1], "") + begins[2]
        if name and (bug := re.search(r"// BUG (\S+)", line)):
            bugs[name] = bug[1], number
        if name and (launch := re.search(r"LAUNCH (\d+) (\d+)", line)):
            launches[name] = int(launch[1]), int(launch[2])
    return bugs, launches


BUGS, BUG_LAUNCHES = told("bugs.cu")
_, CLEAN_LAUNCHES = told("clean.cu")
CLEAN = re.findall(r"\.entry (\w+)\(", (KERNELS / "clean.sm_90a.ptx").read_text())


def loaded(name: str) -> Iterator[LoadedModule]:
    """A module on a machine with little memory."""
    with Machine(threads=1, memory=1 << 22) as machine:
        yield machine.load((KERNELS / f"{name}.sm_90a.ptx").read_text(), f"{name}.ptx")


@pytest.fixture(scope="module")
def bugs() -> Iterator[LoadedModule]:
    """The kernels with bugs."""
    yield from loaded("bugs")


@pytest.fixture(scope="module")
def clean() -> Iterator[LoadedModule]:
    """The kernels without."""
    yield from loaded("clean")


def examine(kernel: Kernel, launch: tuple[int, int]) -> Checked:
    """All checks of a launch over two arrays that are written and one that is not."""
    machine = kernel.machine
    arrays = [
        machine.array(np.arange(128, dtype=np.int32)),
        machine.array(np.zeros(128, np.int32)),
        machine.empty(128, np.int32),
    ]
    checked = check(kernel, *launch, arrays, budget=1 << 20)
    for array in arrays:
        array.free()
    return checked


def test_the_corpora_are_large_enough() -> None:
    """At least 40 bugs of every check, and 100 kernels without."""
    assert len(BUGS) >= 40
    assert {bug.split("/")[0] for bug, _ in BUGS.values()} == {"memory", "race", "sync", "init"}
    assert len(CLEAN) >= 100


@pytest.mark.parametrize("name", BUGS)
def test_a_seeded_bug(bugs: LoadedModule, name: str) -> None:
    """Its kind, at its line; for a race either of its two lines."""
    checked = examine(bugs[name], BUG_LAUNCHES.get(name, (2, 64)))
    found = {
        (f"{finding.check}/{finding.kind}", site.line)
        for finding in checked.findings
        for site in (finding.site, finding.other)
        if site is not None and finding.level != "info"
    }
    assert BUGS[name] in found
    assert checked.bad


@pytest.mark.parametrize("name", sliced(CLEAN, 3))
def test_a_clean_kernel(clean: LoadedModule, name: str) -> None:
    """No error, no warning."""
    checked = examine(clean[name], CLEAN_LAUNCHES.get(name, (2, 64)))
    assert not checked.partial
    assert not checked.bad, "\n".join(line for f in checked.findings for line in f.lines())


def only(checked: Checked, kind: str) -> Finding:
    """The one finding of a kind."""
    (found,) = [finding for finding in checked.findings if finding.kind == kind]
    return found


def test_words(bugs: LoadedModule) -> None:
    """As compute-sanitizer says it: what, where, who, and how far from what."""
    finding = only(examine(bugs["past_the_end"], (2, 64)), "out-of-bounds")
    assert finding.message.startswith("Invalid __global__ write of size 4 bytes. Address 0x")
    assert "is 0 bytes after the nearest allocation at 0x" in finding.message
    assert "of size 512 bytes" in finding.message
    text = "\n".join(finding.lines())
    assert "at past_the_end in bugs.cu:" in text
    assert "by thread (63,0,0) in block (1,0,0)" in text


def test_two_blocks_and_one_cell(bugs: LoadedModule) -> None:
    """The text says that barriers do not order blocks. Source: jrprice/Oclgrind #159."""
    found = examine(bugs["cell_of_two_blocks"], (2, 64)).findings
    reads = [finding for finding in found if "write and read" in finding.message]
    assert [finding.kind for finding in reads] == ["blocks"]
    assert "Barriers do not order blocks" in reads[0].advice
    assert reads[0].other is not None
    assert (reads[0].site.block[0], reads[0].other.block[0]) == (1, 0)


def test_an_error_path_past_a_barrier(bugs: LoadedModule) -> None:
    """Divergence and the race on the pad, and the launch ends. Source: numba/numba #2655."""
    checked = examine(bugs["misses_the_barrier"], (1, 20))
    assert checked.failure is None
    assert "17 of 20 threads of warp 0 at barrier 0" in only(checked, "divergent-warp").message
    assert only(checked, "lanes").other is not None


def test_deadlock_tells_every_warp(bugs: LoadedModule) -> None:
    """Who waits where."""
    checked = examine(bugs["two_barriers"], (1, 64))
    finding = only(checked, "deadlock")
    assert "Deadlock: 32 of 64 threads at barrier 1" in finding.message
    assert [state.split(",")[0] for state in finding.state] == [
        "warp 0: lanes 0xffffffff wait at barrier 1",
        "warp 1: lanes 0xffffffff wait at barrier 2",
    ]
    assert checked.failure is not None


def test_equal_values_are_only_told() -> None:
    """All threads write the same to one place: level info, and not bad."""
    text = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
.reg .b64 %rd<2>;
ld.param.u64 %rd1, [p];
st.global.u32 [%rd1], 1;
ret;
}"""
    with Machine(threads=1, memory=1 << 20) as machine:
        kernel = machine.load(text, "k.ptx")["k"]
        checked = check(kernel, 2, 64, (machine.array(np.zeros(1, np.int32)),))
    assert {finding.level for finding in checked.findings} == {"info"}
    assert {finding.kind for finding in checked.findings} == {"lanes", "warps", "blocks"}
    assert not checked.bad


def test_copies_and_barriers_of_half_the_block() -> None:
    """One instruction that reads global and writes shared memory; a barrier for each warp."""
    text = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
.reg .b32 %r<9>;
.reg .b64 %rd<4>;
.shared .align 4 .b8 tile[256];
ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
shl.b32 %r2, %r1, 2;
mov.u32 %r3, tile;
add.u32 %r4, %r3, %r2;
cp.async.ca.shared.global [%r4], [%rd3], 4;
cp.async.commit_group;
cp.async.wait_group 0;
shr.u32 %r5, %r1, 5;
add.u32 %r5, %r5, 1;
bar.sync %r5, 32;
xor.b32 %r6, %r4, 4;
ld.shared.u32 %r7, [%r6];
st.global.u32 [%rd3], %r7;
ret;
}"""
    with Machine(threads=1, memory=1 << 20) as machine:
        kernel = machine.load(text, "k.ptx")["k"]
        data = machine.array(np.arange(64, dtype=np.int32))
        checked = check(kernel, 1, 64, (data,))
        assert checked.findings == []
        assert data.numpy()[:4].tolist() == [1, 0, 3, 2]
        short = machine.array(np.arange(63, dtype=np.int32))
        found = check(kernel, 1, 64, (short,), checks=("memory",)).findings
        assert [f.message.split(".")[0] for f in found] == [
            "Invalid __global__ read of size 4 bytes",
            "Invalid __global__ write of size 4 bytes",
        ]


def test_use_after_free(bugs: LoadedModule) -> None:
    """What was given back is told apart from what never was."""
    machine = bugs.machine
    gone, kept = machine.array(np.zeros(128, np.int32)), machine.array(np.zeros(128, np.int32))
    gone.free()
    checked = check(bugs["no_guard"], 1, 64, (gone, kept, kept))
    assert "in memory that was freed" in only(checked, "use-after-free").message


def test_what_a_launch_wrote_is_written(clean: LoadedModule, bugs: LoadedModule) -> None:
    """Across launches: under checks by what was written, after others all of it is."""
    machine = bugs.machine
    p = machine.array(np.zeros(128, np.int32))
    e = machine.empty(128, np.int32)
    reads, writes = bugs["unwritten_global"], bugs["unwritten_half"]
    assert [f.kind for f in check(reads, 2, 64, (p, p, e)).findings] == ["uninitialized"]
    check(writes, 2, 64, (p, p, e))  # half of it
    assert check(reads, 1, 32, (p, p, e), checks=("init",)).findings == []
    assert check(reads, 2, 64, (p, p, e), checks=("init",)).bad
    writes[2, 64](p, p, e)
    assert not check(reads, 2, 64, (p, p, e)).bad


def test_a_log_that_is_full(bugs: LoadedModule, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said, and nothing breaks."""
    monkeypatch.setattr(checks, "EventLog", lambda: EventLog(4))
    checked = examine(bugs["barrier_in_a_loop"], (1, 64))
    assert checked.partial
    assert "only in part" in checked.summary


def test_files(bugs: LoadedModule) -> None:
    """SARIF and JUnit hold rule, level and both places."""
    checked = examine(bugs["no_barrier"], (1, 64))
    results = check_sarif(checked.findings)["runs"][0]["results"]
    (race,) = [result for result in results if result["ruleId"] == "race/warps"]
    assert len(race["locations"]) == 2
    assert json.loads(json.dumps(results)) == results
    root = ElementTree.fromstring(check_junit("no_barrier", checks_of("all"), checked.findings))
    assert root.attrib["tests"] == "4"
    assert [case.attrib["name"] for case in root if len(case)] == ["race", "init"]


def test_wrong_names() -> None:
    """The value, and what there is."""
    assert checks_of("race,memory") == ("memory", "race")
    with pytest.raises(LaunchInvalid, match="no check 'races'"):
        checks_of("races")


@pytest.mark.parametrize("asked", [("memory",), ("race",), ("memory", "race", "sync", "init")])
def test_a_launch_that_failed_is_never_no_errors(asked: tuple[Any, ...]) -> None:
    """A fault that no check sees, in local memory, is told by all reports."""
    text = (
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 p)\n{\n.local .b8 l[8];\n.reg .b64 %r<3>;\n"
        "mov.u64 %r1, l;\nadd.u64 %r1, %r1, 4000;\nst.local.u32 [%r1], 7;\nret;\n}\n"
    )
    with Machine(threads=1, memory=1 << 20) as machine:
        kernel = machine.load(text, "far.ptx")["k"]
        checked = check(kernel, 1, 32, [np.uint64(0)], checks=asked)
    (finding,) = checked.findings
    assert (finding.level, finding.where) == ("error", "far.ptx:10")
    assert "1 errors" in checked.summary
    assert len(check_sarif(checked.findings)["runs"][0]["results"]) == 1
    assert 'failures="1"' in check_junit("k", asked, checked.findings)
