"""The guide's page of one block: its program prints what it says, and its files exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "guide" / "one-block.md").read_text()


def test_its_program_prints_what_it_says() -> None:
    """In a process of its own, as a reader would run it."""
    (program,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (said,) = re.findall(r"print\(.*\)  # (.*)", program)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == said


def test_its_files_exist() -> None:
    """The first of a line by its whole path, a bare name beside the one before it."""
    lines = re.findall(r"^(`[^`]+`(?: · `[^`]+`)*)$", PAGE, re.MULTILINE)
    assert len(lines) == len(re.findall(r"^## \d+\. ", PAGE, re.MULTILINE)) == 8
    for line in lines:
        folder = Path()
        for name in re.findall(r"`([^`]+)`", line):
            whole = ROOT / name if "/" in name else folder / name
            assert whole.is_file(), name
            folder = whole.parent
