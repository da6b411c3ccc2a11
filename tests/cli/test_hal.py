"""`bedplate hal`: what is printed, and with which exit code."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.cli.terminal import Terminal
from tests.hal import foreign

from bedplate.cli.main import main
from bedplate.core.measurement import load as load_measurements


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of the test's own."""
    monkeypatch.setenv("BEDPLATE_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


def test_list_shows_devices(capsys: pytest.CaptureFixture[str]) -> None:
    """cpu is there, liar is not."""
    assert main(["hal", "list"]) == 0
    said = capsys.readouterr().out
    assert "cpu:0" in said
    assert "none yet" in said
    assert "liar" not in said


def test_list_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Claims and facts of each device, null certificate before there is one."""
    assert main(["hal", "list", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "bedplate.hal-list/1"
    cpu = next(backend for backend in document["backends"] if backend["name"] == "cpu")
    assert re.fullmatch(r"0\.\d+", cpu["abi"])
    assert "ops" in cpu["devices"][0]["claims"]
    assert cpu["devices"][0]["certificate"] is None


def test_doctor_shows_every_candidate(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taken, hidden, and refused with the reason; exit 1 for the refused one."""
    assert main(["hal", "doctor"]) == 0
    said = capsys.readouterr().out
    assert "taken" in said
    assert "hidden" in said
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    monkeypatch.setenv("BEDPLATE_HAL_BACKEND_FILES", str(bad))
    assert main(["hal", "doctor", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["candidates"]
    assert (found[0]["verdict"], found[0]["path"]) == ("refused", str(bad))
    assert "'schema'" in found[0]["reason"]
    assert main(["hal", "doctor", "--safe"]) == 0


def test_conform_certifies_cpu(
    capsys: pytest.CaptureFixture[str], data: Path, tmp_path: Path
) -> None:
    """Exit 0, a certificate in the data folder, in the file asked for, and then in the list."""
    out = tmp_path / "certificate.json"
    assert main(["hal", "conform", "cpu", "--tier", "quick", "--json", "-o", str(out)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads(out.read_text())
    assert document["capabilities"]["ops"]["verdict"] == "certified"
    assert len(list((data / "certificates").iterdir())) == 1
    assert main(["hal", "list"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"cpu:0 .* GiB +quick\n", said)
    assert "cpu:0  certified: device_address host_visible" in said
    shell = f"stty cols 80 && exec {sys.executable} -m bedplate.cli hal list"
    terminal = Terminal(["sh", "-c", shell])
    assert terminal.end() == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", terminal.text).split("\r\n")
    assert [line for line in lines if len(line) > 80] == []
    assert any(re.search(r"cpu:0 .* GiB +quick$", line) for line in lines)
    assert "quick: made there; full: every case, by" in " ".join(terminal.text.split())


def test_conform_catches_a_liar(capsys: pytest.CaptureFixture[str], data: Path) -> None:
    """Exit 1, the lie and the case by name, and no certificate for a liar."""
    junit = data.parent / "junit.xml"
    words = ["hal", "conform", "liar:0", "--tier", "quick", "--junit", str(junit)]
    assert main(words) == 1
    said = capsys.readouterr().out
    suite = ElementTree.parse(junit).getroot().find("testsuite")
    assert suite is not None
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert "last_error_respects_capacity" in failed
    assert "lie text_overflow: caught by core.last_error_respects_capacity" in said
    assert not (data / "certificates").exists()


def test_a_lie_has_a_name_a_number_and_a_seed(
    capsys: pytest.CaptureFixture[str], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both name one device; the seed reaches the liar and is printed."""
    for variable in ("BEDPLATE_HAL_LIAR_SEED", "BEDPLATE_HAL_SHUFFLE_SEED"):
        monkeypatch.setenv(variable, "1")
    seen: list[tuple[int | None, str]] = []

    def watched(name: str, index: int | None, **_: object) -> list[object]:
        seen.append((index, os.environ["BEDPLATE_HAL_LIAR_SEED"]))
        return []

    monkeypatch.setattr("bedplate.hal.api.conform_backend", watched)
    for lie in ("wrong_copy", "13"):
        main(["hal", "conform", "liar", "--lie", lie, "--seed", "0x10"])
        assert "seed 16" in capsys.readouterr().err
    assert seen == [(13, "16"), (13, "16")]


def test_conform_explains_a_case(capsys: pytest.CaptureFixture[str]) -> None:
    """For people and as JSON, without running anything."""
    words = ["hal", "conform", "cpu", "--explain", "queue.a_signal_comes_after_the_work"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "checks  While the batch is held, its signal is not given." in said
    assert "fails when  as the lie early_signal: a batch signals before" in said
    assert "faced by  cpu:0" in said
    assert main([*words, "--json"]) == 0
    (case,) = json.loads(capsys.readouterr().out)["cases"]
    assert case["faced_by"] == ["cpu:0"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ["conform", "nobody"],
            3,
            "there is no backend 'nobody'; known are cpu, cuda, opencl, simt; `bedplate hal list",
        ),
        (["conform", "cpu:9"], 2, "has no device 9"),
        (["conform", "!"], 2, "is not a device"),
        (["conform", "a/acme.json"], 2, f"by its absolute path, {Path.cwd()}/a/acme.json"),
        (["conform", "liar", "--lie", "white"], 2, "no device here tells the lie 'white'"),
        (["conform", "liar", "--lie", "99"], 2, "no device here tells the lie '99'"),
        (["conform", "cpu", "--lie", "0"], 2, "lies are told by liar and shuffle"),
        (["conform", "liar", "--seed", "-1"], 2, "is not a seed"),
        (["conform", "cpu", "--explain", "nothing"], 2, "no case is called 'nothing'"),
        (["conform", "cpu:9", "--explain", "queue.*"], 2, "has no device 9"),
    ],
)
def test_a_wrong_device_is_one_sentence(
    capsys: pytest.CaptureFixture[str], words: list[str], code: int, said: str
) -> None:
    """With the documented exit code."""
    assert main(["hal", *words]) == code
    assert said in capsys.readouterr().err


def test_conform_says_in_words_what_it_found(capsys: pytest.CaptureFixture[str]) -> None:
    """Counts, the certified capabilities by name, and what could not be tried."""
    assert main(["hal", "conform", "cpu:0", "--tier", "quick"]) == 0
    said = capsys.readouterr().out
    assert " 0 failed, " in said
    assert "certified: core mem queue timeline" in said
    assert "withdrawn" not in said
    assert "claimed: core mem queue timeline device_address" in said
    assert "tested: core mem queue timeline device_address" in said
    assert "claims NOT RUN: none" in said
    assert "not claimed: module_ptx" in said


def test_a_backend_that_crashes_is_refused_in_both_lists(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is well registered, so only its first query shows it; cpu stays usable."""
    folder = tmp_path / "hal.d"
    folder.mkdir(mode=0o755)
    library = foreign.build(folder, "acme", "QUERY { abort(); }")
    foreign.register(library, "acme")
    monkeypatch.setenv("BEDPLATE_HAL_BACKEND_DIRS", str(folder))
    assert main(["hal", "doctor"]) == 1
    assert "died of SIGABRT when it was queried" in capsys.readouterr().out
    assert main(["hal", "list"]) == 0
    said = capsys.readouterr().out
    assert "unusable: the backend acme is refused: it died of SIGABRT" in said
    assert "cpu:0" in said


def test_an_absent_device_is_told_without_its_backends_name(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name stands beside it already, in either list."""
    folder = tmp_path / "hal.d"
    folder.mkdir(mode=0o755)
    body = (
        "static int32_t away(uint32_t *count) { *count = 0; return BP_UNAVAILABLE; }"
        "QUERY { (void)host; (void)wanted; core.enumerate = away; *out = &api; return 0; }"
    )
    foreign.register(foreign.build(folder, "acme", body), "acme")
    monkeypatch.setenv("BEDPLATE_HAL_BACKEND_DIRS", str(folder))
    for verb in ("list", "doctor"):
        assert main(["hal", verb, "--json"]) == 0
        (reason,) = _reasons(json.loads(capsys.readouterr().out), "acme")
        assert reason == "its query ended with 1"


def _reasons(document: dict[str, Any], name: str) -> list[str]:
    listed = [b["reason"] for b in document.get("backends", []) if b["name"] == name]
    return listed + [c["reason"] for c in document.get("candidates", []) if c["backend"] == name]


def test_bench_prints_and_stores(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A table with the seed, measurement/1 records in the file and with --json."""
    out = tmp_path / "measured.json"
    words = ["hal", "bench", "cpu", "--rounds", "2", "--seed", "7"]
    assert main([*words, "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert "memcpy" in said
    assert "seed 7; medians of 2 rounds" in said
    assert "local function call" in said
    assert "B/s" in said
    assert "e+" not in said
    records = load_measurements(out)
    assert {"call_c", "call_cffi", "copy_bandwidth"} <= {record["name"] for record in records}
    assert all(record["schema"] == "bedplate.measurement/1" for record in records)
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "bedplate.measurements/1"
    assert main(["hal", "bench", "cpu", "--rounds", "0"]) == 2


def test_a_list_without_a_device_says_so_by_its_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 3, as when the machine lacks anything else; what is there is still told."""
    monkeypatch.setattr("bedplate.hal.api.listing", lambda safe: [])
    for words in ((), ("--json",)):
        assert main(["hal", "list", *words]) == 3
    assert '"backends": []' in capsys.readouterr().out


def test_new_says_how_to_build_and_test_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each file by its path, then two commands that work from where one stands."""
    folder = tmp_path / "mine"
    assert main(["hal", "new", "mine", "-o", str(folder)]) == 0
    *paths, line = capsys.readouterr().out.splitlines()
    assert {Path(path) for path in paths} == set(folder.iterdir())
    commands = f"make -C {folder}; test it with: bedplate hal conform {folder}/mine.json"
    assert line == f"build it with: {commands}"


@pytest.mark.parametrize(("rounds", "code"), [(1, 0), (0, 2), (-1, 2)])
def test_one_round_is_enough_and_none_is_not(
    monkeypatch: pytest.MonkeyPatch, data: Path, rounds: int, code: int
) -> None:
    """The number is checked before a device is opened."""
    monkeypatch.setattr("bedplate.hal.api.bench_device", lambda device, rounds, seed: [])
    assert main(["hal", "bench", "cpu", "--rounds", str(rounds)]) == code
