"""Published numbers, and which of them are older than the code they speak of.

A number in benchmarks/results/ carries the commit it was measured at. If the
system's sources changed since, the number is listed: it needs measuring
again before anybody quotes it. That is a note, not a violation, because a
number cannot be renewed on every machine; a file that is not readable, or a
number measured on edited sources, is a violation.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path


def stale_numbers(root: Path, fix: bool) -> list[str]:
    """Broken results files; prints a note for each outdated group."""
    violations = []
    outdated: Counter[tuple[str, str, str]] = Counter()
    for path in sorted((root / "benchmarks" / "results").glob("*.json")):
        place = str(path.relative_to(root))
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            records = content["results"]
            facts = [(r["system"], r["name"], r["commit"], r["dirty"]) for r in records]
        except (ValueError, KeyError, TypeError) as cause:
            violations.append(f"{place}: not a measurements file ({cause})")
            continue
        for system, name, commit, dirty in facts:
            if dirty:
                violations.append(f"{place}: {system}/{name} was measured on edited sources")
            elif _changed_since(root, system, commit):
                outdated[(place, system, commit)] += 1
    for (place, system, commit), count in sorted(outdated.items()):
        print(f"  note: {place}: {count} numbers of {system} are from {commit[:12]}, code changed")
    return violations


def _changed_since(root: Path, system: str, commit: str) -> bool:
    paths = [f"src/bedplate/{system}", f"native/{system}"]
    done = subprocess.run(
        ["git", "-C", str(root), "diff", "--quiet", commit, "HEAD", "--", *paths],
        check=False,
        capture_output=True,
    )
    # 0: the same; 1: differs; 128: a commit that this clone does not know.
    return done.returncode != 0
