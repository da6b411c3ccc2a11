"""`python -m bedplate.hal.suite.page [--check]`: the page of lies, and who catches each.

Made from what the cases say they catch; a test holds that against what the
backends `liar` and `shuffle` have.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bedplate.hal.suite.lies import LIES
from bedplate.hal.suite.registry import all_cases

PAGE = "docs/reference/hal-lies.md"
HEAD = """<!-- Generated from the cases by python -m bedplate.hal.suite.page; do not edit. -->
# Lies of the HAL's test backends

A conformance suite is worth what it catches. Each device of the backend `liar`
tells one lie, each device of `shuffle` but the first breaks one promise about
order; the property `liar.lie` names it. A lie that no case names, and a case
that names no lie, fail the tests.

There are {count} lies.

| lie | what the device does | caught by |
|---|---|---|
"""


def catchers() -> dict[str, list[str]]:
    """Lie to the names of the cases that must catch it, both sorted."""
    found: dict[str, list[str]] = {}
    for case in all_cases().values():
        for lie in case.catches:
            found.setdefault(lie, []).append(case.name)
    return {lie: sorted(found[lie]) for lie in sorted(found)}


def page() -> str:
    """The text of the page."""
    named = catchers()
    rows = [
        f"| `{lie}` | {LIES.get(lie, '')} | {', '.join(f'`{name}`' for name in names)} |"
        for lie, names in named.items()
    ]
    return HEAD.format(count=len(named)) + "\n".join(rows) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Write the page, or say that it is stale; 1 when it is."""
    parser = argparse.ArgumentParser(prog="python -m bedplate.hal.suite.page", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 when stale")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the source tree")
    options = parser.parse_args(arguments)
    path = options.root / PAGE
    if not options.check:
        path.write_text(page())
    elif not path.exists() or path.read_text() != page():
        print(f"{PAGE} is not what the cases say; run python -m bedplate.hal.suite.page")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
