"""Driving the suite: workers that crash, hang, or never start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.hal import foreign

from bedplate.hal.conform import conform
from bedplate.hal.errors import HalError, NotFound
from bedplate.hal.suite.registry import Case
from bedplate.hal.suite.run import run, select, worker_command

FAKE = """
import json, os, signal, sys, time
for line in sys.stdin:
    name = line.strip()
    if name == "core.crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if name == "core.hang":
        time.sleep(60)
    if name == "core.unnamed":
        os.kill(os.getpid(), 40)
    if name == "core.stuck":
        sys.stdout.write('{"verdict"')
        sys.stdout.flush()
        time.sleep(60)
    if name == "core.half":
        sys.stdout.write('{"verdict"')
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    print(json.dumps({"case": name, "verdict": "pass", "reason": None}), flush=True)
"""


def cases(*names: str) -> list[Case]:
    """Cases that only have a name."""
    return [Case(f"core.{n}", "core", "positive", "quick", lambda s: None, "") for n in names]


def fake(code: str = FAKE) -> list[str]:
    """A worker that does as its case's name says."""
    return [sys.executable, "-c", code]


def test_a_crash_and_a_hang_are_one_case_each() -> None:
    """llama.cpp #17180: that case fails, the run continues."""
    names = ("good", "crash", "fine", "hang", "half", "last")
    results = run(cases(*names), fake(), deadline_s=0.5)
    assert [(r.name.partition(".")[2], r.verdict) for r in results] == [
        ("good", "pass"),
        ("crash", "fail"),
        ("fine", "pass"),
        ("hang", "fail"),
        ("half", "fail"),
        ("last", "pass"),
    ]
    reasons = {result.name: result.reason for result in results}
    assert reasons["core.crash"] == "it died of SIGSEGV"
    assert reasons["core.hang"] == "it did not end within 0.5 s"
    assert reasons["core.half"] == "it died of SIGKILL"


def test_a_worker_that_cannot_start_says_why() -> None:
    """Its last words are in the error; it is not a failed case."""
    with pytest.raises(HalError, match="ended with 1: RuntimeError: no such thing"):
        run(cases("good"), fake("raise RuntimeError('no such thing')"))


def test_progress_is_told_case_by_case() -> None:
    """In order, each once."""
    told: list[str] = []
    run(cases("a", "b"), fake(), progress=lambda result: told.append(result.name))
    assert told == ["core.a", "core.b"]


def test_tiers_and_claims_choose_the_cases() -> None:
    """quick is a part of full; absent cases face those who do not claim."""
    everything = {case.name for case in select(frozenset({"timestamp"}), "full")}
    quick = {case.name for case in select(frozenset({"timestamp"}), "quick")}
    assert quick < everything
    assert "timestamp.time_does_not_go_back" in quick
    assert "timestamp.timestamps_are_unsupported" not in everything
    assert "clusters.clusters_are_unsupported" in quick
    assert "clusters.a_cluster_of_two_runs" not in everything


def test_a_worker_runs_no_module_of_the_working_directory(tmp_path: Path) -> None:
    """A file named like one of ours stays a file."""
    for name in ("queue", "json", "bedplate"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a file of the folder ran')\n")
    done = subprocess.run(
        worker_command("cpu"), cwd=tmp_path, input="", capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_worker_that_stops_inside_a_line_is_a_hang() -> None:
    """Half an answer does not hold the run for ever."""
    _, half = run(cases("good", "stuck"), fake(), deadline_s=0.5)
    assert (half.verdict, half.reason) == ("fail", "it did not end within 0.5 s")


def test_a_signal_without_a_name_is_told_by_number() -> None:
    """Most real-time signals have no name in Python."""
    (dead,) = run(cases("unnamed"), fake(), deadline_s=5)
    assert (dead.verdict, dead.reason) == ("fail", "it died of signal 40")


def test_after_some_hangs_nobody_is_asked() -> None:
    """Where someone waits, a device that hangs in everything does not take an hour."""
    results = run(
        cases("good", "hang", "fine", "hang", "half", "last"), fake(), deadline_s=0.2, most_hangs=2
    )
    assert [r.verdict for r in results] == ["pass", "fail", "pass", "fail", "not_run", "not_run"]
    assert results[-1].reason == "2 cases before did not end"


PRINTS = """
static int32_t properties(uint32_t index, bp_device_properties *out) { return 0; }
static int32_t claims(uint32_t i, bp_capability *out, uint32_t room, uint32_t *count) {
    *count = 0;
    return 0;
}
static int32_t refuse(uint32_t index, uint64_t *device) {
    return write(1, "half a line", 11) < 0 ? -12 : -4;
}
QUERY {
    core.properties = properties;
    core.capabilities = claims;
    core.open = refuse;
    *out = &api;
    return 0;
}
"""


def test_what_a_library_prints_is_no_answer(tmp_path: Path) -> None:
    """A driver that writes to stdout fails its cases by what it does, not by what it prints."""
    manifest = foreign.register(foreign.build(tmp_path, "prints", PRINTS), "prints")
    results = run(select(frozenset(), "quick")[:2], worker_command(str(manifest)))
    assert {result.verdict for result in results} == {"fail"}
    assert all("the device does not open" in str(result.reason) for result in results)


def test_an_index_past_the_last_device_is_refused() -> None:
    """By the number of devices there are, before a case runs."""
    with pytest.raises(NotFound, match="cpu has no device 1"):
        conform("cpu", 1, tier="quick")
