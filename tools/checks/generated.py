"""Generated files are what their generator makes today.

tools/generated.toml lists the generators. Each is a command that, with
`--check` added, changes nothing and fails when a file is not current.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path


def current(root: Path, fix: bool) -> list[str]:
    """One violation for each generator whose files are old."""
    listed = tomllib.loads((root / "tools" / "generated.toml").read_text(encoding="utf-8"))
    environment = os.environ | {"PYTHONPATH": str(root / "src")}
    violations = []
    for generator in listed.get("generator", []):
        command = [sys.executable, *generator["command"], *([] if fix else ["--check"])]
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            lines = (done.stdout + done.stderr).strip().splitlines() or ["no output"]
            violations.append(f"{generator['name']}: {lines[-1]}")
    return violations
