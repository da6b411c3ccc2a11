"""Loader and backends under ASan with UBSan, and under TSan.

By a C driver everywhere; by the conformance suite, in a Python that only has
the sanitizer's runtime loaded, in `make soak`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.hal.opencl import PLATFORMS, platform_device
from tests.hal.sanitized import SETTINGS, Sanitized

from bedplate.hal.api import register_origin, unregister_provider
from bedplate.hal.open import device_infos, load
from bedplate.hal.suite.registry import Case
from bedplate.hal.suite.run import run, select, worker_command

SECONDS = "0.8"
MACHINE = "example=bedplate.hal.example:Example"
SUITE = [
    *(("address", "opencl", platform) for platform in PLATFORMS),
    *(("address", name, "") for name in ("cpu", "shuffle", "example")),
    *(("thread", name, "") for name in ("cpu", "shuffle", "example")),
]


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("sanitizer", "backend"), [("address", "cpu"), ("thread", "cpu"), ("thread", "shuffle")]
)
def test_nothing_is_found(
    sanitized: Callable[[str], Sanitized], sanitizer: str, backend: str, conform_module: Path
) -> None:
    """Threads that ask, submit, wait, fail, destroy and close at once; no report, exit 0."""
    built = sanitized(sanitizer)
    program = built.program("driver")
    done = built.run(program, str(conform_module), SECONDS, timeout=120, backend=backend)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-6000:]


def weighs_memory(case: Case) -> bool:
    """Whether a case measures what the process holds, which under a sanitizer is the sanitizer."""
    return case.name.endswith(("_come_back", "_comes_back_to_the_process"))


@pytest.mark.soak
@pytest.mark.parametrize(
    ("sanitizer", "backend", "platform"), SUITE, ids=["-".join(words) for words in SUITE]
)
@pytest.mark.parametrize("shared", ["1", "0"])
def test_the_suite_finds_nothing(
    sanitized: Callable[[str], Sanitized],
    sanitizer: str,
    backend: str,
    platform: str,
    shared: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """Every case passes, and no worker left a report.

    Python and an OpenCL platform are not compiled under the sanitizer: only what
    our code does to memory and between threads is seen, so nothing is suppressed.
    """
    if shared == "0" and backend != "opencl":
        pytest.skip("only OpenCL has two kinds of memory")
    monkeypatch.setenv("BEDPLATE_HAL_OPENCL_SVM", shared)
    if backend == "example":
        register_origin(MACHINE)
        request.addfinalizer(lambda: unregister_provider("example"))
    info = platform_device(platform) if platform else device_infos(load(backend))[0]
    built = sanitized(sanitizer)
    settings = SETTINGS | {
        "LD_PRELOAD": built.runtime(),
        "ASAN_OPTIONS": f"detect_leaks=0:log_path={tmp_path / 'report'}",
        "TSAN_OPTIONS": f"exitcode=66:log_path={tmp_path / 'report'}",
    }
    words = ["env", *(f"{name}={value}" for name, value in settings.items())]
    command = [*words, *worker_command(f"{built.manifest(backend)}:{info.index}")]
    # This process knows the device as it was first seen.
    claims = info.claims if shared == "1" else info.claims - {"host_visible"}
    cases = [case for case in select(claims, "full") if not weighs_memory(case)]
    results = run(cases, command, deadline_s=60)
    reports = "".join(path.read_text() for path in sorted(tmp_path.glob("report*")))
    assert reports == ""
    assert [f"{r.name}: {r.reason}" for r in results if r.verdict == "fail"] == []
