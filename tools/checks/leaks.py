"""Nothing tracked names a machine, a registry or a place to download from.

A clone must work behind any mirror and inside an air gap, so an address is
allowed only if nothing fetches it: documentation examples, loopback, licence
and specification texts. Absolute paths of somebody's home or checkout are
never right. Large files do not belong in a repository of sources.
"""

from __future__ import annotations

import re
from pathlib import Path

from checks.tree import files, text

LARGEST_BYTES = 1 << 20
ALLOWED_HOSTS = re.compile(
    r"""(?x)
    localhost | 127\.0\.0\.1 | 0\.0\.0\.0 | \[::1\]      # this machine
    | ([a-z0-9-]+\.)*example(\.(com|org|net|invalid))?   # RFC 2606
    | www\.apache\.org                                   # the licence's own text
    | www\.w3\.org | json-schema\.org                    # names of namespaces, never fetched
    | \{.*                                               # a template that code fills
    """
)
_ADDRESS = re.compile(
    r"""(?x)
    \b (?:https?|ftp|git|ssh) :// (?: [^\s/@"']+ @ )?
    ( [^\s/:"'`)>,]+ | \[[0-9a-f:]+\] )
    """
)
_INDEX_OPTION = re.compile(r"--(?:extra-)?index-url|--find-links|--trusted-host|^-i\s+http")
_MACHINE_PATH = re.compile(
    r"(?<![\w.$}/-])/(?:root|work|Users/\w+|home/(?!user\b)\w+|tmp/\w+/\w+)/[\w.]"
)
# This file names what it looks for.
_EXEMPT = {"tools/checks/leaks.py", "tests/tools/test_leaks.py"}


def no_machine_facts(root: Path, fix: bool) -> list[str]:
    """Violations as `file:line: message`."""
    violations = []
    for path in files(root):
        place = str(path.relative_to(root))
        if path.stat().st_size > LARGEST_BYTES:
            violations.append(f"{place}: {path.stat().st_size} bytes, too large to track")
            continue
        content = text(path)
        if content is None or place in _EXEMPT:
            continue
        violations += [f"{place}:{line}: {what}" for line, what in scan(content)]
    return violations


def scan(content: str) -> list[tuple[int, str]]:
    """Line numbers and what was found in one text."""
    found = []
    for number, line in enumerate(content.splitlines(), start=1):
        for match in _ADDRESS.finditer(line):
            if not ALLOWED_HOSTS.fullmatch(match[1].lower()):
                found.append((number, f"an address at {match[1]}"))
        if option := _INDEX_OPTION.search(line):
            found.append((number, f"the index option {option[0]}"))
        if place := _MACHINE_PATH.search(line):
            found.append((number, f"a path of one machine, {place[0]}..."))
    return found
