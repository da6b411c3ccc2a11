"""What Python declares of the library is what the header says."""

from __future__ import annotations

import re
from pathlib import Path

from bedplate.runtime.native import CDEF

HEADER = Path(__file__).parents[2] / "native" / "runtime" / "include" / "bedplate" / "runtime.h"


def declarations(text: str) -> dict[str, str]:
    """Functions and structs by name, without comments and spaces."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = text.replace("const bp_api *", "const void *")
    found = {}
    for match in re.finditer(r"typedef struct \{(.*?)\} (\w+);", text, re.S):
        fields = []
        for line in match[1].split(";"):
            kind, _, names = line.strip().partition(" ")
            fields += [f"{kind} {name.strip()}" for name in names.split(",") if name]
        found[match[2]] = ";".join(fields)
    for match in re.finditer(r"(u?int\w+|void) \*?(bp_runtime_\w+)\((.*?)\);", text, re.S):
        found[match[2]] = match[1] + re.sub(r"\s+", "", match[3])
    return found


def test_the_header_and_the_declarations_agree() -> None:
    """Every name of either is in both, with the same fields or arguments."""
    header, ours = declarations(HEADER.read_text()), declarations(CDEF)
    assert header.keys() == ours.keys()
    assert len(ours) > 25
    for name, text in header.items():
        assert ours[name] == text, name
