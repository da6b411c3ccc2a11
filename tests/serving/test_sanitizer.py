"""The native core under the address and the undefined-behaviour sanitizer."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

NATIVE = Path(__file__).resolve().parents[2] / "native" / "serving"
PROGRAM = Path(__file__).parent / "native" / "brim.c"
OPTIONS = ["-std=gnu11", "-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def test_a_scheduler_filled_to_the_brim_stays_in_its_memory(tmp_path: Path) -> None:
    """Every request as long as it may be: no byte beside, none lost at the end."""
    sources = [PROGRAM, *sorted(NATIVE.glob("*.c"))]
    built = subprocess.run(
        ["gcc", *OPTIONS, f"-I{NATIVE / 'include'}", *map(str, sources), "-o", tmp_path / "brim"],
        capture_output=True,
        text=True,
        check=False,
    )
    if "libasan" in built.stderr:
        pytest.skip("NOT RUN: gcc has no address sanitizer here")
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([tmp_path / "brim"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "0 left\n"), ran.stdout + ran.stderr
