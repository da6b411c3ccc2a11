"""Floating point: one rounding an operation, subnormals and NaN as the ISA says.

`approx` operations are the correctly rounded ones, which lies within every bound of the
ISA and is the same on every host. NaNs become canonical later; see `nans`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bedplate.simt import exponential, lanes, rounding
from bedplate.simt.emitter import Emitter
from bedplate.simt.lowering.base import lanewise
from bedplate.simt.module import Instruction

_SMALLEST_NORMAL = 2.0**-126
_RECIPROCAL_LIMIT = 2.0**126


def flushed(e: Emitter, value: Any) -> Any:
    """Subnormal f32 values become zeros of their sign."""
    builder = e.builder
    size = lanes.intrinsic(builder, "fabs", [value])
    small = builder.fcmp_ordered("<", size, lanes.like(value, _SMALLEST_NORMAL))
    zero = lanes.intrinsic(builder, "copysign", [lanes.like(value, 0.0), value])
    return builder.select(small, zero, value)


def _inputs(e: Emitter, made: Instruction, values: Sequence[Any]) -> list[Any]:
    return [flushed(e, value) if made.has("ftz") else value for value in values]


def finished(e: Emitter, made: Instruction, value: Any) -> Any:
    """What `ftz` and `sat` make of a result; only f32 is flushed."""
    if made.has("ftz") and lanes.lane_type(value) == lanes.F32:
        value = flushed(e, value)
    if made.has("sat"):
        builder, zero, one = e.builder, lanes.like(value, 0.0), lanes.like(value, 1.0)
        value = builder.select(builder.fcmp_ordered(">", value, zero), value, zero)
        value = builder.select(builder.fcmp_ordered("<", value, one), value, one)
    return value


def rounded(e: Emitter, mode: str, operation: str, values: Sequence[Any]) -> Any:
    """One operation of LLVM in a rounding mode."""
    if mode != "rn":
        kind = values[0].type
        name = rounding.name(mode, operation, lanes.suffix(kind))
        return e.builder.call(lanes.declared(e.module, name, kind, values), values)
    if operation in ("fma", "sqrt"):
        return lanes.intrinsic(e.builder, operation, values)
    return getattr(e.builder, operation)(*values)


def _arithmetic(e: Emitter, made: Instruction, operation: str, values: Sequence[Any]) -> Any:
    mode = made.slots.get("rnd", "rn")
    return finished(e, made, rounded(e, mode, operation, _inputs(e, made, values)))


@lanewise("floating", "add", "sub", "mul")
def basic(e: Emitter, made: Instruction, a: Any, b: Any) -> Any:
    """One rounding; never fused with another operation."""
    return _arithmetic(e, made, f"f{made.opcode}", [a, b])


@lanewise("floating", "fma", "mad")
def fused(e: Emitter, made: Instruction, a: Any, b: Any, c: Any) -> Any:
    """One rounding of the exact a * b + c."""
    return _arithmetic(e, made, "fma", [a, b, c])


@lanewise("floating", "div")
def divide(e: Emitter, made: Instruction, a: Any, b: Any) -> Any:
    """Correctly rounded; `approx` has no quotient for divisors above 2**126."""
    if not made.has("approx"):
        return _arithmetic(e, made, "fdiv", [a, b])
    builder = e.builder
    a, b = _inputs(e, made, [a, b])
    large = builder.fcmp_ordered(
        ">", lanes.intrinsic(builder, "fabs", [b]), lanes.like(b, _RECIPROCAL_LIMIT)
    )
    zero = lanes.intrinsic(builder, "copysign", [lanes.like(b, 0.0), b])
    infinite = builder.fcmp_ordered(
        "==", lanes.intrinsic(builder, "fabs", [b]), lanes.like(b, float("inf"))
    )
    large = builder.and_(large, builder.not_(infinite))
    quotient = builder.select(large, builder.fmul(a, zero), builder.fdiv(a, b))
    return finished(e, made, quotient)


@lanewise("floating", "rcp")
def reciprocal(e: Emitter, made: Instruction, a: Any) -> Any:
    """1 / a."""
    return _arithmetic(e, made, "fdiv", [lanes.like(a, 1.0), a])


@lanewise("floating", "sqrt")
def square_root(e: Emitter, made: Instruction, a: Any) -> Any:
    """Correctly rounded."""
    return _arithmetic(e, made, "sqrt", [a])


@lanewise("floating", "rsqrt")
def reciprocal_root(e: Emitter, made: Instruction, a: Any) -> Any:
    """1 / sqrt(a), two roundings: within 2**-23 for f32."""
    (a,) = _inputs(e, made, [a])
    root = lanes.intrinsic(e.builder, "sqrt", [a])
    return finished(e, made, e.builder.fdiv(lanes.like(a, 1.0), root))


@lanewise("floating", "ex2")
def power_of_two(e: Emitter, made: Instruction, a: Any) -> Any:
    """Within 2 ulp of 2**a; see `exponential`."""
    builder = e.builder
    (a,) = _inputs(e, made, [a])
    wide = lanes.retyped(a, lanes.F64)
    x = builder.fpext(a, wide)
    low, high = lanes.like(x, -exponential.LIMIT), lanes.like(x, exponential.LIMIT)
    x = builder.select(builder.fcmp_ordered(">", x, low), x, low)
    x = builder.select(builder.fcmp_ordered("<", x, high), x, high)
    whole = lanes.intrinsic(builder, "rint", [x])
    rest = builder.fsub(x, whole)
    total: Any = lanes.like(x, exponential.TERMS[-1])
    for term in reversed(exponential.TERMS[:-1]):
        total = builder.fadd(builder.fmul(total, rest), lanes.like(x, term))
    kind = lanes.retyped(a, lanes.I64)
    exponent = builder.fptosi(whole, kind)
    exponent = builder.add(exponent, lanes.like(exponent, 1023))
    scale = builder.bitcast(builder.shl(exponent, lanes.like(exponent, 52)), wide)
    result = builder.fptrunc(builder.fmul(total, scale), a.type)
    odd = builder.fcmp_unordered("uno", a, a)
    return finished(e, made, builder.select(odd, a, result))


@lanewise("floating", "min", "max")
def extreme(e: Emitter, made: Instruction, a: Any, b: Any) -> Any:
    """The other operand for a NaN; -0 is below +0."""
    name = "minimumnum" if made.opcode == "min" else "maximumnum"
    values = _inputs(e, made, [a, b])
    return finished(e, made, lanes.intrinsic(e.builder, name, values))


@lanewise("floating", "abs", "neg")
def sign(e: Emitter, made: Instruction, a: Any) -> Any:
    """Only the sign changes."""
    (a,) = _inputs(e, made, [a])
    return lanes.intrinsic(e.builder, "fabs", [a]) if made.opcode == "abs" else e.builder.fneg(a)
