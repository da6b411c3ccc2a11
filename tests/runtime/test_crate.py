"""The crate's own tests: random histories against a model, with planted failures."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CARGO = shutil.which("cargo")


def run(operations: int) -> None:
    """The crate's tests, each seed of this length."""
    assert CARGO, "cargo is missing; `make build` needs it too"
    target = ROOT / "build" / "cargo-tests"
    done = subprocess.run(
        [CARGO, "test", "--offline", "--locked", "--quiet", "--target-dir", target],
        cwd=ROOT / "native" / "runtime" / "alloc",
        env=os.environ | {"OPERATIONS": str(operations)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "test result: ok" in done.stdout


@pytest.mark.timeout(300)
def test_random_histories_keep_every_rule() -> None:
    """A slice of what `make soak` runs."""
    run(20_000)


@pytest.mark.soak
def test_ten_million_operations_keep_every_rule() -> None:
    """Fourteen seeds of this length: more than ten million operations."""
    run(800_000)
