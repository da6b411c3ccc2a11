"""The conformance suite on the cpu backend, and on every lie of the liar."""

from __future__ import annotations

import pytest

from bedplate.hal.open import device_infos, load
from bedplate.hal.suite import liar
from bedplate.hal.suite.lies import LIES as WORDS
from bedplate.hal.suite.registry import (
    CAPABILITIES,
    MANDATORY,
    Case,
    CaseFailed,
    all_cases,
    register,
)
from bedplate.hal.suite.run import CaseResult, run, select, worker_command
from bedplate.hal.suite.subject import Subject
from bedplate.hal.suite.worker import run_case
from bedplate.kernels.api import ReferenceOracle

CASES = all_cases()
LIES = [liar.lie_of(info) or "" for info in device_infos(load("liar"))]
BREACHES = [liar.lie_of(info) or "" for info in device_infos(load("shuffle"))[1:]]
CPU_CLAIMS = device_infos(load("cpu"))[0].claims


@pytest.fixture(scope="session")
def cpu_results() -> dict[str, CaseResult]:
    """Every applicable case, run the way `bedplate hal conform cpu` does."""
    return {r.name: r for r in run(select(CPU_CLAIMS, "full"), worker_command("cpu:0"))}


@pytest.mark.parametrize("name", [case.name for case in select(CPU_CLAIMS, "full")])
def test_cpu_conforms(cpu_results: dict[str, CaseResult], name: str) -> None:
    """The case passes on cpu, or says why it could not be tried."""
    result = cpu_results[name]
    assert result.verdict in ("pass", "not_run"), result.reason
    if result.verdict == "not_run":
        assert result.reason
        pytest.skip(f"NOT RUN: {result.reason}")


def test_cpu_passes_more_than_three_hundred_cases(cpu_results: dict[str, CaseResult]) -> None:
    """The count that is promised is the count of passes, not of names."""
    assert sum(result.verdict == "pass" for result in cpu_results.values()) > 300


def test_every_capability_has_a_positive_and_a_negative_case() -> None:
    """Claims that this suite cannot show are known by name, and then stay NOT RUN."""
    polarities = {
        capability: {case.polarity for case in CASES.values() if case.capability == capability}
        for capability in CAPABILITIES
    }
    without_positive = {name for name, found in polarities.items() if "positive" not in found}
    without_negative = {
        name for name, found in polarities.items() if not found & {"negative", "absent"}
    }
    # Code that no backend of ours compiles yet.
    assert without_positive == {"module_spirv"}
    assert without_negative == set()
    assert all({"positive", "negative"} <= polarities[name] for name in MANDATORY)


@pytest.mark.parametrize("index", range(len(LIES)), ids=LIES)
def test_every_lie_is_caught_by_name(index: int) -> None:
    """A case that names the lie fails on the device that tells it, and passes on cpu."""
    lie = LIES[index]
    claims = device_infos(load("liar"))[index].claims
    watchers = [c for c in CASES.values() if lie in c.catches and c.applies(claims)]
    # What this process frees beside it may hide a leak from one measurement.
    for _ in range(3):
        results = [_result("liar", index, case) for case in watchers]
        if liar.caught(lie, watchers, results):
            break
    assert liar.caught(lie, watchers, results), f"{lie} got away: {results}"
    honest = [_result("cpu", 0, case) for case in watchers if case.applies(CPU_CLAIMS)]
    assert all(result.verdict == "pass" for result in honest), honest


@pytest.mark.parametrize("seed", ["2", "77"])
def test_a_lie_is_caught_wherever_it_is_told(monkeypatch: pytest.MonkeyPatch, seed: str) -> None:
    """Lies that choose a place by seed are found at other places too."""
    monkeypatch.setenv("BEDPLATE_HAL_LIAR_SEED", seed)
    for lie in ("wrong_copy", "wrong_op"):
        watchers = [case for case in CASES.values() if lie in case.catches]
        results = [_result("liar", LIES.index(lie), case) for case in watchers]
        assert liar.caught(lie, watchers, results)


def _result(backend: str, index: int, case: Case) -> CaseResult:
    subject = Subject(load(backend), index, ReferenceOracle())
    try:
        verdict, reason = run_case(case, subject)
    finally:
        subject.close()
    return CaseResult(case.name, case.capability, verdict, reason)


def test_lies_and_cases_name_each_other() -> None:
    """No lie without a case, no case for a lie that does not exist."""
    assert liar.unwatched([*LIES, *BREACHES], CASES.values()) == []


def test_every_lie_is_told_in_words() -> None:
    """Each once, and none that no device tells."""
    assert set(WORDS) == {*LIES, *BREACHES}
    assert len(set(WORDS.values())) == len(WORDS)


def test_a_lie_without_a_case_is_found() -> None:
    """The check above can fail, in both directions."""
    found = liar.unwatched([*LIES, *BREACHES, "new_lie"], CASES.values())
    assert found == ["no case catches the lie new_lie"]
    found = liar.unwatched({*LIES, *BREACHES} - {"overrun"}, CASES.values())
    assert found == ["a case names the unknown lie overrun"]


def test_a_lie_that_gets_away_is_nobodys() -> None:
    """A failing case counts only for the lies that it names."""
    watcher = CASES["queue.fills_stay_inside"]
    passed = CaseResult(watcher.name, "queue", "pass", None)
    other = CaseResult("queue.commands_run_in_order", "queue", "fail", "x")
    assert liar.caught("overrun", [watcher], [passed, other]) is None


def test_without_an_oracle_ops_are_not_run() -> None:
    """Nothing is compared with nothing."""
    subject = Subject(load("cpu"), 0)
    try:
        verdict, reason = run_case(CASES["ops.matmul_agrees_with_the_oracle"], subject)
    finally:
        subject.close()
    assert (verdict, reason) == ("not_run", "no oracle is wired")


def test_a_needed_tool_that_is_missing_is_not_a_failure() -> None:
    """A case that needs another capability is NOT RUN without it."""
    case = CASES["device_address.kernels_get_the_described_address"]
    subject = Subject(load("cpu"), 0)
    object.__setattr__(subject.info, "claims", subject.info.claims - {"module_native"})
    try:
        verdict, reason = run_case(case, subject)
    finally:
        subject.close()
    assert verdict == "not_run"
    assert "module_native" in (reason or "")


def test_a_broken_case_is_a_failure_with_its_place() -> None:
    """An exception of any kind is a failed case, and the run goes on."""

    def body(subject: Subject) -> None:
        raise ZeroDivisionError("oops")

    broken = Case("core.broken", "core", "positive", "quick", body, "")
    subject = Subject(load("cpu"), 0)
    try:
        verdict, reason = run_case(broken, subject)
    finally:
        subject.close()
    assert verdict == "fail"
    assert "ZeroDivisionError: oops (body, line" in (reason or "")


def test_a_case_is_registered_once() -> None:
    """A repeated name and an unknown capability are refused."""
    known = CASES["core.enumerate_is_stable"]
    with pytest.raises(ValueError, match="two cases"):
        register(known)
    with pytest.raises(ValueError, match="unknown capability"):
        register(Case("x.y", "x", "positive", "quick", known.body, ""))


def test_a_refusal_must_be_the_right_one() -> None:
    """Wrong status, success, and a refusal without words each fail a case."""
    subject = Subject(load("cpu"), 0)
    try:
        subject.api.mem.release(subject.handle, 0)
        assert "not a live handle" in subject.refuses(-1, -1, "a refusal")
        with pytest.raises(CaseFailed, match="gave BP_OK, not BP_INVALID_ARGUMENT"):
            subject.refuses(0, -1, "a success")
        with pytest.raises(CaseFailed, match="gave BP_DEADLINE, not BP_UNSUPPORTED or BP_NOT"):
            subject.refuses(-7, (-3, -6), "another refusal")
        with pytest.raises(CaseFailed, match="gave BP_INVALID_ARGUMENT"):
            subject.works(-1, "a failure")
    finally:
        subject.close()
