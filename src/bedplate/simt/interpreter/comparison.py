"""Comparisons and selection."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bedplate.simt.interpreter.base import Lanes, evaluates
from bedplate.simt.interpreter.floating import flushed
from bedplate.simt.module import Instruction

_COMPARE: dict[str, Callable[[Lanes, Lanes], Lanes]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}


@evaluates("comparison", "setp")
def compare(made: Instruction, a: Lanes, b: Lanes, c: Lanes | None = None) -> tuple[Lanes, Lanes]:
    """The comparison, and its opposite, each combined with `c` when there is one."""
    result = _compared(made, a, b)
    opposite = ~result
    if c is None:
        return result, opposite
    combine = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
    function = combine[made.slots["bool"]]
    return function(result, c), function(opposite, c)


def _compared(made: Instruction, a: Lanes, b: Lanes) -> Lanes:
    comparison = made.slots["cmp"]
    if made.type.kind != "float":
        return _COMPARE[comparison](a, b)
    a, b = flushed(made, a), flushed(made, b)
    unordered = np.isnan(a) | np.isnan(b)
    if comparison in ("num", "nan"):
        return unordered if comparison == "nan" else ~unordered
    if comparison.endswith("u"):
        return _COMPARE[comparison[:-1]](a, b) | unordered
    return _COMPARE[comparison](a, b) & ~unordered


@evaluates("comparison", "selp")
def select(made: Instruction, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """`a` where the predicate is set, else `b`."""
    bits = f"u{made.type.bytes}"
    return np.where(c, a.view(bits), b.view(bits))
