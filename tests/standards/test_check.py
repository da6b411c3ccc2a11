"""Gates run over a tree: verdicts, reasons, and gates that nobody needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from bedplate.core.errors import EnvironmentLacks, UsageError
from bedplate.core.gates import Finding, GateResult, GateVerdict
from bedplate.standards.api import check


@dataclass
class Fixed:
    """A gate that says what it is told."""

    name: str
    incident: str = "a bad day"
    verdict: GateVerdict = GateVerdict.PASSED

    def check(self, tree: Path) -> GateResult:
        """Its verdict; a failure with one finding."""
        if self.verdict is GateVerdict.PASSED:
            return GateResult(self.name, self.verdict)
        found = (Finding("a.py", 3, "it is bad", "make it good"),)
        return GateResult(self.name, self.verdict, "because", found)


class Raises(Fixed):
    """A gate that lacks something."""

    def check(self, tree: Path) -> GateResult:
        """Never ends well."""
        raise EnvironmentLacks("the tool is missing", remedy="install it")


def test_verdicts_keep_their_order_and_reasons(tmp_path: Path) -> None:
    """Passed, failed, and what raised is NOT RUN with the sentence."""
    report = check(tmp_path, [Fixed("one"), Fixed("two", verdict=GateVerdict.FAILED), Raises("x")])
    assert [v.result.verdict for v in report.verdicts] == ["passed", "failed", "not_run"]
    assert report.failed
    assert "the tool is missing" in str(report.verdicts[2].result.reason)
    assert not check(tmp_path, [Fixed("one"), Raises("x")]).failed
    assert check(tmp_path, [Fixed("one"), Raises("x")]).is_incomplete
    assert not check(tmp_path, [Fixed("one")]).is_incomplete


class Refuses(Fixed):
    """A gate whose file in the tree is wrong."""

    def check(self, tree: Path) -> GateResult:
        """Somebody's to mend."""
        raise UsageError("a.toml, x: unknown key")


def test_wrong_input_is_not_passed_over(tmp_path: Path) -> None:
    """As NOT RUN it would look like something that this machine lacks."""
    with pytest.raises(UsageError, match="unknown key"):
        check(tmp_path, [Fixed("one"), Refuses("x")])


def test_a_gate_without_an_incident_is_a_candidate_for_deletion(tmp_path: Path) -> None:
    """It runs, and that is said of it."""
    report = check(tmp_path, [Fixed("one"), Fixed("two", incident=" ")])
    assert [v.is_candidate_for_deletion for v in report.verdicts] == [False, True]


def test_what_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    """No folder, an unknown gate, two of one name."""
    with pytest.raises(UsageError, match="no folder"):
        check(tmp_path / "none", [])
    with pytest.raises(UsageError, match="no gate is called 'z'; there are a"):
        check(tmp_path, [Fixed("a")], ["z"])
    with pytest.raises(UsageError, match="two gates"):
        check(tmp_path, [Fixed("a"), Fixed("a")])
