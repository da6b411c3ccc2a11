"""Verdicts on capabilities, expected failures, exit codes."""

from __future__ import annotations

import datetime

import pytest

from bedplate.hal.errors import InvalidArgument
from bedplate.hal.suite import judge
from bedplate.hal.suite.judge import Expected
from bedplate.hal.suite.registry import Case, Polarity
from bedplate.hal.suite.run import CaseResult

TODAY = datetime.date(2026, 6, 1)


def made(polarity: Polarity, verdict: str, essential: bool = False) -> tuple[Case, CaseResult]:
    """A case of `ops` and its result."""
    name = f"ops.{polarity}_{verdict}_{essential}"
    case = Case(name, "ops", polarity, "quick", lambda s: None, "", essential=essential)
    return case, CaseResult(name, "ops", verdict, None if verdict == "pass" else "why")


@pytest.mark.parametrize(
    ("claimed", "pairs", "verdict", "counts"),
    [
        (True, [("positive", "pass"), ("negative", "pass")], "certified", ("1/1", "1/1")),
        (True, [("positive", "pass"), ("negative", "fail")], "withdrawn", ("1/1", "0/1")),
        (True, [("positive", "fail"), ("negative", "pass")], "withdrawn", ("0/1", "1/1")),
        (True, [("positive", "pass")], "not_run", ("1/1", "0/0")),
        (True, [("negative", "pass")], "not_run", ("0/0", "1/1")),
        (True, [("positive", "not_run"), ("negative", "pass")], "not_run", ("0/0", "1/1")),
        (True, [], "not_run", ("0/0", "0/0")),
        (False, [("absent", "pass")], "not_claimed", ("0/0", "1/1")),
        (False, [("absent", "fail")], "not_claimed", ("0/0", "0/1")),
    ],
)
def test_a_verdict_follows_from_the_cases(
    claimed: bool,
    pairs: list[tuple[Polarity, str]],
    verdict: str,
    counts: tuple[str, str],
) -> None:
    """Skips are never passes, and a claim needs both polarities."""
    cases = [made(*pair) for pair in pairs]
    claims = frozenset({"ops"} if claimed else ())
    found = judge.verdicts(claims, [c for c, _ in cases], [r for _, r in cases])["ops"]
    assert (found.verdict, (found.positive, found.negative)) == (verdict, counts)


@pytest.mark.parametrize(("essential", "verdict"), [("pass", "certified"), ("not_run", "not_run")])
def test_an_essential_case_must_have_passed(essential: str, verdict: str) -> None:
    """Without the oracle the other op cases prove nothing."""
    cases = [made("positive", "pass"), made("negative", "pass"), made("positive", essential, True)]
    found = judge.verdicts(frozenset({"ops"}), [c for c, _ in cases], [r for _, r in cases])
    assert found["ops"].verdict == verdict


def test_mandatory_tables_are_always_claimed() -> None:
    """core is judged even for a device that claims nothing."""
    assert judge.verdicts(frozenset(), [], [])["core"].verdict == "not_run"


@pytest.mark.parametrize(
    ("verdict", "entry", "words"),
    [
        ("fail", None, "why"),
        ("pass", None, None),
        ("not_run", None, None),
        ("fail", ("cpu", 1), None),
        ("fail", ("cpu", 0), None),
        ("fail", ("cpu", -1), "which is over"),
        ("pass", ("cpu", -1), "which is over"),
        ("pass", ("cpu", 1), "was expected to fail: reported"),
        ("fail", ("other", 1), "why"),
        ("not_run", ("cpu", 1), "expected to fail, but was NOT RUN"),
    ],
)
def test_expected_failures_have_an_end(
    verdict: str, entry: tuple[str, int] | None, words: str | None
) -> None:
    """An expired entry and an unexpected pass are failures; one of another backend is none."""
    _, result = made("positive", verdict)
    expected = []
    if entry is not None:
        day = TODAY + datetime.timedelta(days=entry[1])
        expected = [Expected(entry[0], result.name, "reported", day)]
    found = judge.problems("cpu", [result], expected, TODAY)
    assert len(found) == (words is not None)
    assert not words or words in found[0]


def test_the_list_of_expected_failures_is_read() -> None:
    """The shipped one is well formed."""
    text = '[[expected]]\nbackend="a"\ncase="b"\nreason="c"\nexpires=2026-01-02\n'
    assert judge.load_expected(text) == [Expected("a", "b", "c", datetime.date(2026, 1, 2))]
    assert all(entry.reason for entry in judge.load_expected())


@pytest.mark.parametrize("line", ['reason=""', "reason=7", 'expires="soon"', "expires=7"])
def test_an_undated_or_unexplained_failure_is_refused(line: str) -> None:
    """Both are asked of every entry."""
    fields = {"backend": '"a"', "case": '"b"', "reason": '"c"', "expires": "2026-01-02"}
    key, _, value = line.partition("=")
    text = "[[expected]]\n" + "\n".join(f"{k}={v}" for k, v in (fields | {key: value}).items())
    with pytest.raises(InvalidArgument, match=f"has no {key}"):
        judge.load_expected(text)


def test_exit_codes() -> None:
    """1 with a problem, 3 when a claim was not shown, else 0."""
    shown = judge.CapabilityVerdict(True, "1/1", "1/1", "certified")
    unclaimed = judge.CapabilityVerdict(False, "0/0", "0/0", "not_run")
    open_claim = judge.CapabilityVerdict(True, "0/0", "1/1", "not_run")
    assert judge.exit_code([], {"a": shown, "b": unclaimed}) == 0
    assert judge.exit_code([], {"a": shown, "b": open_claim}) == 3
    assert judge.exit_code(["x"], {"b": open_claim}) == 1


def test_an_expected_failure_of_no_case_is_a_problem() -> None:
    """A renamed case must not leave its entry behind; one of the other tier may stay."""
    day = TODAY + datetime.timedelta(days=1)
    gone = Expected("cpu", "ops.no_such_case", "reported", day)
    other_tier = Expected("cpu", "mem.large_memory_is_whole", "reported", day)
    assert judge.problems("cpu", [], [gone, other_tier], TODAY) == [
        "ops.no_such_case: expected to fail, but there is no such case"
    ]


def test_a_claim_is_in_one_group() -> None:
    """Claimed, tested, certified, withdrawn and NOT RUN are told apart."""
    verdict = judge.CapabilityVerdict
    told = judge.summary(
        {
            "a": verdict(True, "1/1", "1/1", "certified"),
            "b": verdict(True, "0/1", "1/1", "withdrawn"),
            "c": verdict(True, "0/0", "0/0", "not_run"),
            "d": verdict(True, "0/0", "2/2", "not_run"),
            "e": verdict(False, "0/0", "1/1", "not_claimed"),
        }
    )
    assert told == {
        "claimed": ["a", "b", "c", "d"],
        "tested": ["a", "b", "d"],
        "certified": ["a"],
        "withdrawn": ["b"],
        "not_run": ["c", "d"],
        "not_claimed": ["e"],
    }
