"""What all tests share: the time budget of each system, and Hypothesis.

A test never fails on a wall-clock time; a system whose tests take longer than
the budget is shown, and its owner makes them smaller. Property tests draw the
same examples on every run, so a failure is never gone the next time; `make
soak` draws new ones.
"""

from __future__ import annotations

import os
import sysconfig
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("house", deadline=None, derandomize=True)
hypothesis.settings.register_profile("soak", deadline=None, max_examples=2000, print_blob=True)
hypothesis.settings.load_profile("house")

BUDGET_S = 120

# As in a shell whose environment is activated: messages then call the program by its name.
os.environ["PATH"] = os.pathsep.join((sysconfig.get_path("scripts"), os.environ["PATH"]))

OCLGRIND = Path("/usr/lib/oclgrind/liboclgrind-rt-icd.so")
"""Debian installs the simulator without registering it."""

_seconds: defaultdict[str, float] = defaultdict(float)
_TESTS = Path(__file__).parent.name


@pytest.fixture(scope="session", autouse=True)
def opencl_platforms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Both OpenCL platforms that the tests know, whatever the machine registers.

    For all tests: the loader looks once in a process, and the tests' own process and its
    children must number the devices alike.
    """
    folder = tmp_path_factory.mktemp("vendors")
    registered = sorted(Path("/etc/OpenCL/vendors").glob("*.icd"))
    for file in registered:
        (folder / file.name).write_bytes(file.read_bytes())
    if OCLGRIND.exists():
        (folder / "oclgrind.icd").write_text(f"{OCLGRIND}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OCL_ICD_VENDORS", str(folder))
        yield


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add each phase's time to the test's system."""
    parts = Path(report.nodeid.partition("::")[0]).parts
    system = parts[1] if parts[0] == _TESTS and len(parts) > 2 else "other"
    _seconds[system] += report.duration


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print seconds per system; pytest's own summary line stays last."""
    if not _seconds:
        return
    terminalreporter.section(f"seconds per system, budget {BUDGET_S}")
    for system, seconds in sorted(_seconds.items(), key=lambda item: -item[1]):
        over = "   OVER BUDGET" if seconds > BUDGET_S else ""
        terminalreporter.write_line(f"{system:<16}{seconds:8.1f}{over}")
