"""The HAL's C ABI only grows: the report against the newest tagged version."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def append_only(root: Path, fix: bool) -> list[str]:
    """The report's lines when it refuses a change or a tag was touched."""
    done = subprocess.run(
        [sys.executable, "-m", "bedplate.hal.spec", "--report"],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return []
    return (done.stdout + done.stderr).strip().splitlines() or ["no output"]
