"""Conversions between integers."""

from __future__ import annotations

from typing import Any

from bedplate.simt import lanes
from bedplate.simt.emitter import Emitter
from bedplate.simt.lowering.base import lanewise
from bedplate.simt.module import Instruction


@lanewise("conversion", "cvt")
def convert(e: Emitter, made: Instruction, a: Any) -> Any:
    """Truncation or extension by the source's sign, then up to the register's width."""
    builder, to, source = e.builder, made.types["T"], made.types["U"]
    if made.has("sat"):
        a = _saturated(e, made, a)
    value = lanes.resized(builder, a, to.bits, signed=source.signed)
    output = made.operands["d"]
    if output is not None and output.type.bits > to.bits:  # type: ignore[union-attr]
        return lanes.resized(builder, value, output.type.bits, signed=to.signed)  # type: ignore[union-attr]
    return value


def _saturated(e: Emitter, made: Instruction, a: Any) -> Any:
    """Within the destination's range, as far as the source's type can leave it."""
    builder, to, source = e.builder, made.types["T"], made.types["U"]
    low = -(1 << (to.bits - 1)) if to.signed else 0
    high = (1 << (to.bits - int(to.signed))) - 1
    least = -(1 << (source.bits - 1)) if source.signed else 0
    most = (1 << (source.bits - int(source.signed))) - 1
    kind = "s" if source.signed else "u"
    if low > least:
        a = lanes.intrinsic(builder, f"{kind}max", [a, lanes.like(a, low)])
    if high < most:
        a = lanes.intrinsic(builder, f"{kind}min", [a, lanes.like(a, high)])
    return a
