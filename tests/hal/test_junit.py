"""JUnit XML of a run: well formed, counted right, NOT RUN and expected failures skipped."""

from __future__ import annotations

import datetime
from typing import Any
from xml.etree import ElementTree

from bedplate.hal.suite.judge import Expected
from bedplate.hal.suite.junit import document

# junit-10.xsd of the Jenkins xunit plugin: what may stand where, and what must be there.
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase", "system-out", "system-err"},
    "properties": {"property"},
    "property": set(),
    "testcase": {"skipped", "error", "failure", "system-out", "system-err"},
    "failure": set(),
    "skipped": set(),
}
ATTRIBUTES = {
    "testsuites": {"name", "time", "tests", "failures", "errors", "skipped", "disabled"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "timestamp", "time", "id"},
    "properties": set(),
    "property": {"name", "value"},
    "testcase": {"name", "classname", "time", "status", "assertions"},
    "failure": {"type", "message"},
    "skipped": {"type", "message"},
}
REQUIRED = {"testsuite": {"name", "tests", "failures", "errors"}, "testcase": {"name"}}


def check(element: ElementTree.Element) -> None:
    """Raise where an element breaks the schema."""
    assert {child.tag for child in element} <= CHILDREN[element.tag]
    assert set(element.keys()) <= ATTRIBUTES[element.tag]
    assert REQUIRED.get(element.tag, set()) <= set(element.keys())
    for child in element:
        check(child)


def certificate(*cases: tuple[str, str, str | None], backend: str = "cpu") -> dict[str, Any]:
    """A certificate of those cases."""
    facts = {"driver": "1", "abi": "0.2", "suite": "4", "tier": "full", "library_sha256": "00"}
    results = [{"name": name, "verdict": verdict, "reason": why} for name, verdict, why in cases]
    return facts | {
        "backend": backend,
        "device_id": f"{backend}:0",
        "device": 'A <& "B"',
        "time_ns": 1_800_000_000_000_000_000,
        "cases": results,
    }


CASES = (
    ("mem.good", "pass", None),
    ("mem.bad", "fail", "it said <no> & \x00\x1b[0m stopped"),
    ("ops.open", "not_run", "no oracle is wired"),
    ("ops.known", "fail", "wrong by 3"),
)


def test_every_verdict_has_its_form() -> None:
    """Pass is empty, fail is a failure, NOT RUN and expected are skipped with their reasons."""
    known = [Expected("cpu", "ops.known", "reported", datetime.date(2027, 1, 1))]
    root = ElementTree.fromstring(document([certificate(*CASES)], known))
    check(root)
    (suite,) = root
    assert suite.get("name") == 'cpu:0 A <& "B"'
    assert [suite.get(n) for n in ("tests", "failures", "errors", "skipped")] == list("4102")
    good, bad, not_run, expected = suite.findall("testcase")
    assert (good.get("classname"), good.get("name"), len(good)) == ("hal.mem", "good", 0)
    assert bad[0].tag == "failure"
    assert bad[0].get("message") == "it said <no> & \ufffd\ufffd[0m stopped"
    assert not_run[0].get("message") == "NOT RUN: no oracle is wired"
    words = "expected to fail until 2027-01-01: reported; wrong by 3"
    assert (expected[0].tag, expected[0].get("message")) == ("skipped", words)


def test_devices_are_suites_and_sums_are_right() -> None:
    """Two devices, one root with the sums; another backend's expectation counts for nobody."""
    known = [Expected("other", "ops.known", "reported", datetime.date(2027, 1, 1))]
    pair = [certificate(*CASES), certificate(*CASES[:1], backend="liar")]
    root = ElementTree.fromstring(document(pair, known))
    check(root)
    assert [root.get(name) for name in ("tests", "failures", "skipped")] == ["5", "2", "1"]
    assert [suite.get("tests") for suite in root] == ["4", "1"]
