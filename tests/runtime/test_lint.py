"""The lint of the runtime contract: what it sees, what it lets pass, what it asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from bedplate.core.errors import UsageError
from bedplate.core.gates import GateVerdict
from bedplate.runtime.api import RuntimeContract
from bedplate.runtime.lint import scan

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("queue.synchronize()", "synchronize"),
        ("    torch.cuda.synchronize( )", "synchronize"),
        ("cudaDeviceSynchronize();", "synchronize"),
        ("status = cuCtxSynchronize();", "synchronize"),
        ("clFinish(queue);", "synchronize"),
        ("x = self.device.allocate(5)", "allocate"),
        ("cudaMallocAsync(&p, n, s);", "allocate"),
        ("cuMemMap(a, b, 0, h, 0);", "allocate"),
    ],
)
def test_calls_are_seen(line: str, call: str) -> None:
    """By the vendors' names and by ours."""
    assert list(scan(f"a = 1\n{line}\n")) == [(2, call)]


@pytest.mark.parametrize(
    "line",
    [
        "# queue.synchronize() would wait",
        "// cudaDeviceSynchronize();",
        " * cuMemAlloc() is slow",
        "def synchronize(self): ...",
        "pool.allocate(5, stream)",
        "timeline.wait(7)",
    ],
)
def test_comments_names_and_pools_are_not(line: str) -> None:
    """A comment, a definition, and the right way to do it."""
    assert list(scan(line)) == []


def tree(folder: Path, source: str, settings: str = "") -> Path:
    """A tree with one engine file."""
    engine = folder / "src" / "bedplate" / "serving"
    engine.mkdir(parents=True)
    (engine / "step.py").write_text(source)
    if settings:
        (folder / "standards.toml").write_text(settings)
    return folder


ALLOW = """[[runtime_contract.allow]]
path = "src/bedplate/serving/step.py"
call = "synchronize"
reason = "{reason}"
"""


def test_a_violation_names_file_line_and_remedy(tmp_path: Path) -> None:
    """And an exception with a reason lets it pass."""
    result = RuntimeContract().check(tree(tmp_path / "a", "x = 1\nqueue.synchronize()\n"))
    assert result.verdict is GateVerdict.FAILED
    (found,) = result.findings
    assert (found.path, found.line) == ("src/bedplate/serving/step.py", 2)
    assert "standards.toml" in found.remedy
    given = tree(tmp_path / "b", "queue.synchronize()\n", ALLOW.format(reason="it is the end"))
    assert RuntimeContract().check(given).verdict is GateVerdict.PASSED


def test_an_exception_that_nobody_needs_is_a_finding(tmp_path: Path) -> None:
    """Else the list only grows."""
    result = RuntimeContract().check(tree(tmp_path, "x = 1\n", ALLOW.format(reason="once")))
    assert "any more" in result.findings[0].message


def test_exceptions_need_a_reason_and_a_known_call(tmp_path: Path) -> None:
    """One sentence each; a broken file too."""
    silent = tree(tmp_path / "a", "", ALLOW.format(reason=" "))
    with pytest.raises(UsageError, match="for no reason"):
        RuntimeContract().check(silent)
    changed = ALLOW.format(reason="x").replace('"synchronize"', '"sync"')
    with pytest.raises(UsageError, match="no call is named 'sync'"):
        RuntimeContract().check(tree(tmp_path / "b", "", changed))
    with pytest.raises(UsageError, match="cannot be read"):
        RuntimeContract().check(tree(tmp_path / "c", "", "[[["))


def test_a_tree_without_an_engine_is_not_run(tmp_path: Path) -> None:
    """Never a pass."""
    assert RuntimeContract().check(tmp_path).verdict is GateVerdict.NOT_RUN


def test_our_own_tree_passes() -> None:
    """With the exceptions that it names."""
    assert RuntimeContract().check(ROOT).verdict is GateVerdict.PASSED
