"""The guide's page of one launch of PTX: its program runs, and the files that it names exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAUNCH = (ROOT / "docs" / "guide" / "one-ptx-launch.md").read_text()
STOPS = re.findall(r"^## \d+\. (.+)\n\n(`.+`)$", LAUNCH, re.MULTILINE)
SYSTEM = ROOT / "src" / "bedplate" / "simt"


def test_the_launchs_program_prints_what_it_says() -> None:
    """In a process of its own, as a reader would run it."""
    (program,) = re.findall(r"^```python\n(.*?)^```$", LAUNCH, re.MULTILINE | re.DOTALL)
    (said,) = re.findall(r"print\(.*\)  # (.*)", program)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == said, done.stderr


@pytest.mark.parametrize(("stop", "files"), STOPS, ids=[stop for stop, _ in STOPS])
def test_the_files_of_a_stop_exist(stop: str, files: str) -> None:
    """Those of the command line beside the system's."""
    for name in re.findall(r"`([^`]+)`", files):
        whole = SYSTEM.parent / name if name.startswith("cli/") else SYSTEM / name
        assert whole.is_file(), f"{stop}: {name}"


def test_every_stop_was_found() -> None:
    """Else nothing above was looked at; and no file of the system's first folder is missing."""
    assert len(STOPS) == len(re.findall(r"^## \d+\. ", LAUNCH, re.MULTILINE)) == 13
    for name in set(re.findall(r"`((?!cli/)[\w/]+\.py)`", LAUNCH)):
        assert (SYSTEM / name).is_file(), name
