import ast
import json
import re
import sys
import tomllib
from pathlib import Path

import lock

ROOT = Path(__file__).resolve().parents[2]


def test_a_pin_has_all_hashes_and_no_address() -> None:
    """What is written is what `pip install --require-hashes` reads."""
    text = lock.render("run", {"b": ("2", {"f" * 64, "a" * 64}), "a": ("1", {"0" * 64})})
    assert text.splitlines()[1:] == [
        "a==1 \\",
        f"    --hash=sha256:{'0' * 64}",
        "b==2 \\",
        f"    --hash=sha256:{'a' * 64} \\",
        f"    --hash=sha256:{'f' * 64}",
    ]


def test_the_repository_holds_one_version_of_a_library() -> None:
    """No two requirement files disagree, and constraints.txt repeats them."""
    versions: dict[str, set[str]] = {}
    for path in (ROOT / "requirements").glob("*.txt"):
        for line in path.read_text().splitlines():
            if "==" in line and not line.startswith((" ", "#")):
                name, version = line.split(" ")[0].split("==")
                versions.setdefault(name, set()).add(version)
    assert versions
    assert json.dumps({n: sorted(v) for n, v in versions.items() if len(v) > 1}) == "{}"


# The C parser of cffi: in run.in for its version alone.
NOT_IMPORTED = {"pycparser"}


def imported() -> set[str]:
    """The distributions that the product imports, wherever in a file; names as on an index."""
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {name.name for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module)
    tops = {name.partition(".")[0] for name in found}
    return {t.replace("_", "-") for t in tops - set(sys.stdlib_module_names) - {"bedplate"}}


def test_what_is_installed_to_run_is_what_the_product_imports() -> None:
    """Nothing that only tests need, and nothing by another library's kindness."""
    lines = (ROOT / "requirements" / "run.in").read_text().splitlines()
    pinned = {line.split("==")[0] for line in lines if "==" in line}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    ranged = {re.split("[<>=!~]", line)[0] for line in project["dependencies"]}
    assert pinned - NOT_IMPORTED == ranged == imported()
