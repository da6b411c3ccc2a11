"""Comparisons and selection."""

from __future__ import annotations

from typing import Any

from bedplate.simt import lanes
from bedplate.simt.emitter import Emitter
from bedplate.simt.lowering.base import lanewise
from bedplate.simt.lowering.floating import flushed
from bedplate.simt.module import Instruction

_INTEGER = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_INTEGER |= {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}


@lanewise("comparison", "setp")
def compare(e: Emitter, made: Instruction, a: Any, b: Any, c: Any | None = None) -> tuple[Any, Any]:
    """The comparison, and its opposite, each combined with `c` when there is one."""
    builder, comparison = e.builder, made.slots["cmp"]
    if made.type.kind == "float":
        result = _float(e, made, a, b)
    elif made.type.signed:
        result = builder.icmp_signed(_INTEGER[comparison], a, b)
    else:
        result = builder.icmp_unsigned(_INTEGER[comparison], a, b)
    opposite = builder.not_(result)
    if c is None:
        return result, opposite
    combine = {"and": builder.and_, "or": builder.or_, "xor": builder.xor}[made.slots["bool"]]
    return combine(result, c), combine(opposite, c)


def _float(e: Emitter, made: Instruction, a: Any, b: Any) -> Any:
    builder, comparison = e.builder, made.slots["cmp"]
    if made.has("ftz"):
        a, b = flushed(e, a), flushed(e, b)
    if comparison == "num":
        return builder.fcmp_ordered("ord", a, b)
    if comparison == "nan":
        return builder.fcmp_unordered("uno", a, b)
    if comparison.endswith("u"):
        return builder.fcmp_unordered(_INTEGER[comparison[:-1]], a, b)
    return builder.fcmp_ordered(_INTEGER[comparison], a, b)


@lanewise("comparison", "selp")
def select(e: Emitter, made: Instruction, a: Any, b: Any, c: Any) -> Any:
    """`a` where the predicate is set, else `b`; bits, so payloads stay."""
    bits = lanes.integer(made.type.bits)
    chosen = [lanes.cast(e.builder, value, bits) for value in (a, b)]
    return e.builder.select(c, *chosen)
