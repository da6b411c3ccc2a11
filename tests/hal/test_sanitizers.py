"""Loader and cpu backend under ASan with UBSan, and under TSan, by a C driver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.hal.sanitized import FLAGS, Sanitized

SECONDS = "1.5"


@pytest.mark.timeout(180)
@pytest.mark.parametrize("sanitizer", list(FLAGS))
def test_nothing_is_found(
    sanitized: Callable[[str], Sanitized], sanitizer: str, conform_module: Path
) -> None:
    """Threads that submit, wait, fail, destroy and close at once; no report, exit 0."""
    built = sanitized(sanitizer)
    done = built.run(built.program("driver"), str(conform_module), SECONDS, timeout=120)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-6000:]
