"""The platform of the orchestrator's tests, asked by commands."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

from tests.orchestrator.conftest import (
    certificates,
    certified,
    own_environment,
    plate,
    tiny_file,
)

__all__ = ["bedplate", "certificates", "certified", "own_environment", "plate", "tiny_file"]


def bedplate(
    *arguments: object, env: Mapping[str, str] | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command as a person would, in a process of its own."""
    import os

    return subprocess.run(
        [sys.executable, "-m", "bedplate.cli", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(env or {})},
        timeout=50,
    )
