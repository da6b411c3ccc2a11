"""The reference page's program runs, and its table has every option with its default."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "runtime.md"
CONF = Path(__file__).parents[2] / "native" / "runtime" / "alloc" / "src" / "conf.rs"


def test_the_programs_run() -> None:
    """As printed; one shows a free segment of 2 MiB, the other what a stream has copied."""
    printed: list[object] = []
    for program in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S):
        exec(program, {"print": printed.append})
    assert printed == [2 << 20, 7]


def test_every_option_is_in_the_table() -> None:
    """By name, no more and no less than the library knows."""
    keys = re.search(r"KEYS: \[&str; \d+\] = \[(.*?)\]", CONF.read_text(), re.S)
    assert keys
    known = re.findall(r'"(\w+)"', keys[1])
    table = PAGE.read_text().partition("## Options")[2].partition("## Traces")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.M) == known
