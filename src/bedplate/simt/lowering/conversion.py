"""Conversions: into a range and never undefined, with the rounding that is asked for."""

from __future__ import annotations

from typing import Any

from bedplate.simt import lanes, nans, rounding
from bedplate.simt.emitter import Emitter
from bedplate.simt.lowering.base import lanewise
from bedplate.simt.lowering.floating import SCALE, finished, flushed, propagated, underflowed
from bedplate.simt.module import Instruction, Register

_WHOLE = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


@lanewise("conversion", "cvt")
def convert(e: Emitter, made: Instruction, a: Any, b: Any = None) -> Any:
    """By the kinds of both types."""
    if "pair" in made.slots:
        return _pair(e, made, a, b)
    to, source = made.types["T"], made.types["U"]
    if source.name == "bf16":
        wide = lanes.resized(e.builder, a, 32)
        return e.builder.shl(wide, lanes.like(wide, 16))
    if to.name == "bf16":
        return _to_bfloat(e, a)
    if to.kind == "float":
        return _to_float(e, made, a) if source.kind == "float" else _from_integer(e, made, a)
    value = _to_integer(e, made, a) if source.kind == "float" else _between(e, made, a)
    output = made.operands["d"]
    if isinstance(output, Register) and output.type.bits > to.bits:
        return lanes.resized(e.builder, value, output.type.bits, signed=to.signed)
    return value


def _pair(e: Emitter, made: Instruction, a: Any, b: Any) -> Any:
    """Two floats as halves of a word, the first in the upper one."""
    builder = e.builder

    def half(value: Any) -> Any:
        if made.slots["pair"] == "bf16x2":
            return lanes.resized(builder, _to_bfloat(e, value), 32)
        short = builder.fptrunc(value, lanes.retyped(value, lanes.F16))
        bits = lanes.resized(builder, lanes.cast(builder, short, lanes.integer(16)), 32)
        nan = builder.fcmp_unordered("uno", value, value)
        return builder.select(nan, lanes.like(bits, 0x7FFF), bits)

    upper = half(a)
    return builder.or_(builder.shl(upper, lanes.like(upper, 16)), half(b))


def _between(e: Emitter, made: Instruction, a: Any) -> Any:
    """Truncation, or extension by the source's sign."""
    if made.has("sat"):
        a = _saturated(e, made, a)
    return lanes.resized(e.builder, a, made.types["T"].bits, signed=made.types["U"].signed)


def _to_integer(e: Emitter, made: Instruction, a: Any) -> Any:
    """Rounded to a whole number, then into the range; `nans` has what a NaN is."""
    builder, to = e.builder, made.types["T"]
    if made.has("ftz"):
        a = flushed(e, a)
    if lanes.lane_type(a) == lanes.F16:
        a = builder.fpext(a, lanes.retyped(a, lanes.F32))
    if made.slots["irnd"] != "rzi":
        a = lanes.intrinsic(builder, _WHOLE[made.slots["irnd"]], [a])
    result = lanes.retyped(a, lanes.integer(to.bits))
    operation = f"fpto{'s' if to.signed else 'u'}i.sat"
    name = f"llvm.{operation}.{lanes.suffix(result)}.{lanes.suffix(a.type)}"
    whole = builder.call(lanes.declared(e.module, name, result, [a]), [a])
    if not nans.of_conversion(made):
        return whole
    odd = builder.fcmp_unordered("uno", a, a)
    return builder.select(odd, lanes.like(whole, nans.of_conversion(made)), whole)


def _from_integer(e: Emitter, made: Instruction, a: Any) -> Any:
    to, source, mode = made.types["T"], made.types["U"], made.slots["rnd"]
    result = lanes.retyped(a, lanes.element(to))
    operation = "sitofp" if source.signed else "uitofp"
    exact = source.bits < to.bits
    if mode == "rn" or exact:
        return getattr(e.builder, operation)(a, result)
    value = _converted(e, mode, operation, a, result)
    # Processors without the instruction subtract a constant, which in rm makes -0 of 0.
    none = e.builder.icmp_unsigned("==", a, lanes.like(a, 0))
    return e.builder.select(none, lanes.like(value, 0.0), value)


def _converted(e: Emitter, mode: str, operation: str, a: Any, result: Any) -> Any:
    name = rounding.name(mode, operation, lanes.suffix(result), lanes.suffix(a.type))
    return e.builder.call(lanes.declared(e.module, name, result, [a]), [a])


def _to_float(e: Emitter, made: Instruction, a: Any) -> Any:
    """Wider, narrower, or the same with a whole number as result."""
    builder, to, source = e.builder, made.types["T"], made.types["U"]
    result, mode = lanes.retyped(a, lanes.element(to)), made.slots.get("rnd", "rn")
    if made.has("ftz") and source.name == "f32":
        a = flushed(e, a)
    if to.bits > source.bits:
        if to.bits == 64 and source.bits == 16:
            a = builder.fpext(a, lanes.retyped(a, lanes.F32))
        if made.has("ftz") and to.bits == 64:
            # flushing is arithmetic of f32, so the payload is gone
            a = lanes.cast(builder, e.canonical(lanes.cast(builder, a, lanes.I32)), lanes.F32)
        return finished(e, made, builder.fpext(a, result))
    if to.bits < source.bits:

        def narrowed(value: Any) -> Any:
            if mode == "rn":
                return builder.fptrunc(value, result)
            return _converted(e, mode, "fptrunc", value, result)

        value = narrowed(a)
        if made.has("ftz") and source.bits == 64:
            value = underflowed(e, value, lambda: narrowed(builder.fmul(a, lanes.like(a, SCALE))))
        return finished(e, made, value)
    value = a
    if "irnd" in made.slots:
        value = lanes.intrinsic(builder, _WHOLE[made.slots["irnd"]], [a])
        if to.bits == 64:
            value = propagated(e, value, [a])
    return finished(e, made, value)


def _to_bfloat(e: Emitter, a: Any) -> Any:
    """The upper half, rounded to nearest even."""
    builder = e.builder
    bits = lanes.cast(builder, a, lanes.I32)
    odd = builder.and_(builder.lshr(bits, lanes.like(bits, 16)), lanes.like(bits, 1))
    up = builder.add(bits, builder.add(odd, lanes.like(bits, 0x7FFF)))
    half = lanes.resized(builder, builder.lshr(up, lanes.like(up, 16)), 16)
    nan = builder.fcmp_unordered("uno", a, a)
    return builder.select(nan, lanes.like(half, 0x7FFF), half)


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
