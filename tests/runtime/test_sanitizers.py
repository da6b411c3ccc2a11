"""The scheduler's ring, workers and watchers under ASan with UBSan, and under TSan."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runtime.sanitized import SanitizedStreams


def run(sanitizer: str, folder: Path, seconds: str) -> None:
    """Producers, failures, resets, graphs and stops; no report, exit 0."""
    built = SanitizedStreams(sanitizer, folder)
    done = built.run(built.scheduler("streams"), seconds, timeout=150)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-6000:]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("sanitizer", ["address", "thread"])
def test_nothing_is_found(sanitizer: str, tmp_path: Path) -> None:
    """One round of everything at least."""
    run(sanitizer, tmp_path, "1.5")


@pytest.mark.soak
@pytest.mark.timeout(240)
@pytest.mark.parametrize("sanitizer", ["address", "thread"])
def test_nothing_is_found_in_a_minute(sanitizer: str, tmp_path: Path) -> None:
    """The same for longer."""
    run(sanitizer, tmp_path, "60")
