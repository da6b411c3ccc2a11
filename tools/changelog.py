"""Move the fragments of changelog.d/ into CHANGELOG.md for a release.

.venv/bin/python tools/changelog.py VERSION [--date YYYY-MM-DD]
"""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("breaking", "added", "changed", "fixed")


def fragments(folder: Path) -> dict[str, list[Path]]:
    """The fragment files by kind, in the order of the changelog.

    Exits with 2 when a file's name has no known kind.
    """
    found: dict[str, list[Path]] = {kind: [] for kind in KINDS}
    for path in sorted(folder.glob("*.md")):
        if path.name == "README.md":
            continue
        kind = path.name.split(".")[-2]
        if kind not in found:
            sys.exit(f"{path.name}: {kind!r} is none of {', '.join(KINDS)}")
        found[kind].append(path)
    return found


def section(version: str, date: str, found: dict[str, list[Path]]) -> str:
    """The changelog's text of one release."""
    lines = [f"## {version} ({date})", ""]
    for kind, paths in found.items():
        if paths:
            lines += [f"### {kind.capitalize()}", ""]
            lines += ["- " + " ".join(path.read_text().split()) for path in paths]
            lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="turn fragments into a release's changelog")
    parser.add_argument("version")
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    arguments = parser.parse_args()
    found = fragments(ROOT / "changelog.d")
    target = ROOT / "CHANGELOG.md"
    intro, mark, older = target.read_text().partition("\n## ")
    text = section(arguments.version, arguments.date, found)
    target.write_text(f"{intro.rstrip()}\n\n{text}" + (f"\n## {older}" if mark else ""))
    for paths in found.values():
        for path in paths:
            path.unlink()


if __name__ == "__main__":
    main()
