"""Files stay readable: aim for 250 lines, look again at 400, split before 600.

Only the last is a violation; files above 400 are listed, so that the next
person who opens one knows that it is due.
"""

from __future__ import annotations

import re
from pathlib import Path

from checks.tree import files

LOOK_AGAIN = 400
LIMIT = 600
SOURCES = (".py", ".c", ".h", ".cpp", ".hpp", ".cu", ".rs", ".ts", ".svelte", ".sh", ".cmake")
# A generated file is as long as its description makes it.
_GENERATED = re.compile(r"generated|do not edit", re.IGNORECASE)
_BAD_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}


def file_lengths(root: Path, fix: bool) -> list[str]:
    """Files that are too long, and files whose name says nothing."""
    violations = []
    for path in files(root, *SOURCES):
        lines = path.read_text(encoding="utf-8").splitlines()
        place = path.relative_to(root)
        if path.stem in _BAD_NAMES:
            violations.append(f"{place}: name the noun instead of {path.stem!r}")
        if any(_GENERATED.search(line) for line in lines[:5]):
            continue
        if len(lines) > LIMIT:
            violations.append(f"{place}: {len(lines)} lines, split it below {LIMIT}")
        elif len(lines) > LOOK_AGAIN:
            print(f"  note: {place} has {len(lines)} lines, look again at {LOOK_AGAIN}")
    return violations
