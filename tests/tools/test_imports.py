from collections.abc import Callable
from pathlib import Path

import pytest
from checks.imports import only_api

Write = Callable[[str, str], Path]


@pytest.mark.parametrize(
    "line",
    [
        "import bedplate.hal.loader",
        "from bedplate.hal.loader import x",
        "from bedplate.hal import loader",
        "def f():\n    from bedplate.hal.loader import x",
    ],
)
@pytest.mark.parametrize("place", ["src/bedplate/serving/a.py", "tests/cli/a.py", "tools/a.py"])
def test_reaching_past_api_is_found(tree: Path, write: Write, place: str, line: str) -> None:
    """Wherever it stands, also inside a function and in tests."""
    write(place, line + "\n")
    (violation,) = only_api(tree, False)
    assert violation.startswith(f"{place}:")
    assert violation.endswith("use bedplate.hal.api")


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("src/bedplate/serving/a.py", "from bedplate.hal.api import Device"),
        ("src/bedplate/serving/a.py", "from bedplate.hal import api"),
        ("src/bedplate/serving/a.py", "from bedplate.core.errors import BedplateError"),
        ("src/bedplate/hal/a.py", "from bedplate.hal.loader import x"),
        ("tests/hal/test_a.py", "from bedplate.hal.loader import x"),
        ("src/bedplate/serving/a.py", "from bedplate import __version__"),
        ("src/bedplate/serving/a.py", "import numpy.linalg"),
        ("src/bedplate/serving/a.py", "from . import b"),
    ],
)
def test_the_allowed_ways(tree: Path, write: Write, place: str, line: str) -> None:
    """api of others, everything of one's own and of core."""
    write(place, line + "\n")
    assert only_api(tree, False) == []
