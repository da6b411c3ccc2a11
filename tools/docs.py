"""`make docs`: build the documentation site with warnings as errors.

    .venv/bin/python tools/docs.py [--out site]

Pages are found as files: a section is a folder of docs/ in the order below,
its `index.md` comes first and the rest follow by name. Adding a page needs no
list. The composed site lies in build/docs/.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECTIONS = ("guide", "reference", "runbooks", "decisions")


def navigation(docs: Path) -> list[dict[str, str | list[str]]]:
    """The tree of pages, as paths relative to `docs`.

    Exits with 1 when a page lies where no section shows it.
    """
    shown: list[dict[str, str | list[str]]] = [{"Home": "index.md"}]
    for section in SECTIONS:
        pages = [str(page.relative_to(docs)) for page in sorted((docs / section).rglob("*.md"))]
        pages.sort(key=lambda page: page != f"{section}/index.md")
        if pages:
            shown.append({section.capitalize(): pages})
    listed = {"index.md"}
    for part in shown[1:]:
        listed.update(*part.values())
    for page in sorted(docs.rglob("*.md")):
        if str(page.relative_to(docs)) not in listed:
            sys.exit(f"docs/{page.relative_to(docs)} is in none of {', '.join(SECTIONS)}")
    return shown


def build(root: Path, out: Path) -> list[str]:
    """Build the site into `out` and return the warnings, none when it is good."""
    work = root / "build" / "docs"
    shutil.rmtree(work, ignore_errors=True)
    # The builder wants its configuration, pages and output in one folder.
    shutil.copytree(root / "docs", work / "docs")
    # JSON is YAML, so what is computed can simply be appended.
    look = (root / "tools" / "site.yml").read_text(encoding="utf-8")
    pages = json.dumps(navigation(root / "docs"))
    (work / "mkdocs.yml").write_text(f"{look}nav: {pages}\n", encoding="utf-8")
    command = [str(Path(sys.executable).parent / "zensical"), "build", "--strict", "--clean"]
    done = subprocess.run(
        [*command, "-f", str(work / "mkdocs.yml")], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        shutil.rmtree(out, ignore_errors=True)
        (work / "site").rename(out)
        return []
    report = done.stderr.partition("Traceback")[0] or done.stderr
    return [line for line in report.splitlines() if line.strip()]


def main() -> int:
    parser = argparse.ArgumentParser(description="build the documentation site")
    parser.add_argument("--out", type=Path, default=ROOT / "site", metavar="DIR")
    out = parser.parse_args().out
    warnings = build(ROOT, out)
    print("\n".join(warnings) if warnings else out / "index.html")
    return 1 if warnings else 0


if __name__ == "__main__":
    sys.exit(main())
