"""What Python declares of the library is what the header says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bedplate.runtime.explore import RULE_CDEF
from bedplate.runtime.native import CDEF
from bedplate.runtime.plugin import PLUGIN_CDEF
from bedplate.runtime.streams import STREAMS_CDEF

INCLUDE = Path(__file__).parents[2] / "native" / "runtime" / "include" / "bedplate"
HAL = {"bp_head", "bp_fence", "bp_batch"}
"""Structs of the HAL that the scheduler's functions take; their sizes are the HAL's to test."""


def declarations(text: str) -> dict[str, str]:
    """Functions and structs by name, without comments and spaces."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = text.replace("const bp_api *", "const void *").replace(" BP_RUNTIME_NOEXCEPT", "")
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


@pytest.mark.parametrize(
    ("name", "declared", "least"),
    [
        ("runtime.h", CDEF, 25),
        ("streams.h", STREAMS_CDEF, 22),
        ("policy.h", PLUGIN_CDEF + RULE_CDEF, 2),
    ],
)
def test_the_header_and_the_declarations_agree(name: str, declared: str, least: int) -> None:
    """Every name of either is in both, with the same fields or arguments."""
    header, ours = declarations((INCLUDE / name).read_text()), declarations(declared)
    assert header.keys() == ours.keys() - HAL
    assert len(ours) > least
    for item, text in header.items():
        assert ours[item] == text, item
