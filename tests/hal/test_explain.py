"""What is said of a case: what it checks, how a backend fails it, and who faces it."""

from __future__ import annotations

import pytest

from bedplate.hal.api import NotFound
from bedplate.hal.open import device_infos, load
from bedplate.hal.suite.explain import FAILURES, explain
from bedplate.hal.suite.registry import all_cases

CPU = device_infos(load("cpu"))


def test_a_case_is_explained_with_its_lies() -> None:
    """Its own words, the failure of its kind, and each lie that it catches."""
    (one,) = explain("queue.a_signal_comes_after_the_work", CPU)
    assert one.checks == "While the batch is held, its signal is not given."
    assert one.fails_when[0] == FAILURES["positive"]
    assert "as the lie early_signal: a batch signals before its work is done" in one.fails_when
    assert one.faced_by == ("cpu:0",)


def test_a_pattern_explains_many_and_who_faces_them() -> None:
    """cpu claims no clusters: it faces the case for their absence alone."""
    found = explain("clusters.*", CPU)
    assert {one.polarity: one.faced_by for one in found} == {
        "positive": (),
        "negative": (),
        "absent": ("cpu:0",),
    }


def test_every_case_says_what_it_checks() -> None:
    """In a sentence of its own, and none says the same of two lies."""
    found = explain("*", [])
    assert len(found) == len(all_cases())
    assert [one.name for one in found if not one.checks.endswith((".", "?"))] == []
    assert all(len(set(one.fails_when)) == len(one.fails_when) for one in found)


@pytest.mark.parametrize(
    ("pattern", "remedy"),
    [("queue.a_signal_come", "queue.a_signal_comes_after_the_work"), ("", "queue.*")],
)
def test_a_case_that_is_not_there_is_refused(pattern: str, remedy: str) -> None:
    """With a near name where there is one."""
    with pytest.raises(NotFound, match="no case is called") as caught:
        explain(pattern, CPU)
    assert remedy in (caught.value.remedy or "")
