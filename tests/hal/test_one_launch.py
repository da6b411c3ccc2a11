"""The guide's page of one launch: its program runs, and the files that it names exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "guide" / "one-launch.md").read_text()
STOPS = re.findall(r"^## \d+\. (.+)\n\n(`.+`)$", PAGE, re.MULTILINE)
FOLDERS = ("", "src/bedplate/hal", "native/hal", "native/hal/chassis", "native/hal/cpu")


def test_its_program_prints_what_it_says() -> None:
    """In a process of its own, as a reader would run it."""
    (program,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (said,) = re.findall(r"print\(.*\)  # (.*)", program)
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == said


@pytest.mark.parametrize(("stop", "files"), STOPS, ids=[stop for stop, _ in STOPS])
def test_the_files_of_a_stop_exist(stop: str, files: str) -> None:
    """The first by its whole path, a bare name beside the one before it."""
    folder = Path()
    for name in re.findall(r"`([^`]+)`", files):
        whole = ROOT / name if name.startswith(("native/", "src/")) else folder / name
        assert whole.is_file(), f"{stop}: {name}"
        folder = whole.parent if "suite/" not in name else folder


def test_every_stop_was_found() -> None:
    """Else nothing above was looked at; names in the text exist as well."""
    assert len(STOPS) == len(re.findall(r"^## \d+\. ", PAGE, re.MULTILINE)) == 13
    for name in set(re.findall(r"`([\w/]+\.(?:c|h|py))`", PAGE)):
        assert any((ROOT / folder / name).is_file() for folder in FOLDERS) or list(
            ROOT.glob(f"native/hal/*/{Path(name).name}")
        ), name
