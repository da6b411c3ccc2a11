"""Only a system's `api` module is imported from outside of it.

`core` is public as a whole. What a system's own tests, benchmarks and
generators import of that system is free; of others they too use `api`.
The layers themselves are import-linter's business (.importlinter).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from checks.tree import files

PACKAGE = "bedplate"
# Importing a private module of these is allowed everywhere.
PUBLIC = {"core"}
FOLDERS = ("src/bedplate", "tests", "benchmarks", "tools")


def only_api(root: Path, fix: bool) -> list[str]:
    """Violations as `file:line: message`."""
    violations = []
    for path in files(root, ".py"):
        place = path.relative_to(root)
        if not str(place).startswith(FOLDERS):
            continue
        owner = _owner(place)
        for line, target in _imports(path):
            parts = target.split(".")
            if parts[0] != PACKAGE or len(parts) < 2 or parts[1] in PUBLIC | {owner}:
                continue
            if len(parts) == 2 or parts[2] != "api":
                violations.append(f"{place}:{line}: imports {target}, use {PACKAGE}.{parts[1]}.api")
    return violations


def _owner(place: Path) -> str:
    """The system that a file belongs to."""
    parts = place.parts
    depth = 2 if parts[0] == "src" else 1
    return parts[depth] if len(parts) > depth + 1 else ""


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            if node.module.count(".") >= 2 or not node.module.startswith(PACKAGE):
                yield node.lineno, node.module
                continue
            for alias in node.names:
                # `from bedplate.hal import api` names the module in the alias,
                # `from bedplate import __version__` names none.
                if alias.name[:1].islower():
                    yield node.lineno, f"{node.module}.{alias.name}"
