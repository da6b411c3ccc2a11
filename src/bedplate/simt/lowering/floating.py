"""Floating point: one rounding an operation, subnormals and NaN as the ISA says.

`approx` operations are the correctly rounded ones, which lies within every bound of the
ISA and is the same on every host. NaNs of f32 become canonical later; see `nans`. With `ftz`
a result is flushed when it is below the normal numbers as rounded to 24 bits with exponents
without end, so one that the format's own rounding brings up to 2**-126 may be zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bedplate.simt import exponential, lanes, nans, rounding
from bedplate.simt.emitter import Emitter
from bedplate.simt.lowering.base import lanewise
from bedplate.simt.module import Instruction

_SMALLEST_NORMAL = 2.0**-126
_RECIPROCAL_LIMIT = 2.0**126
SCALE = 2.0**64
"""Brings results at the end of f32 to where their exponents have room."""


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


def underflowed(e: Emitter, result: Any, again: Callable[[], Any]) -> Any:
    """Zero for a result at 2**-126 that is less as `again` makes it, `SCALE` times larger."""
    builder = e.builder
    size = lanes.intrinsic(builder, "fabs", [result])
    edge = builder.fcmp_ordered("==", size, lanes.like(result, _SMALLEST_NORMAL))

    def flushed_there() -> Any:
        large = lanes.intrinsic(builder, "fabs", [again()])
        less = builder.fcmp_ordered("<", large, lanes.like(large, _SMALLEST_NORMAL * SCALE))
        zero = lanes.intrinsic(builder, "copysign", [lanes.like(result, 0.0), result])
        return builder.select(builder.and_(edge, less), zero, result)

    return lanes.rarely(builder, edge, result, flushed_there)


def _scaled(e: Emitter, operation: str, values: Sequence[Any]) -> list[Any]:
    """Operands of which the result is `SCALE` times larger; exact where underflow is near."""
    builder = e.builder
    a, b, *rest = values
    larger = [builder.fmul(value, lanes.like(value, SCALE)) for value in (a, b, *rest)]
    if operation == "fdiv":
        return [larger[0], b]
    sizes = [lanes.intrinsic(builder, "fabs", [value]) for value in (a, b)]
    first = builder.fcmp_ordered("<", *sizes)
    both = [builder.select(first, larger[0], a), builder.select(first, b, larger[1])]
    return [*both, *larger[2:]]


def propagated(e: Emitter, result: Any, operands: Sequence[Any]) -> Any:
    """f64's NaN: of the first operand that is one, made quiet; without one the canonical."""
    builder = e.builder
    odd = builder.fcmp_unordered("uno", result, result)

    def chosen() -> Any:
        bits = lanes.cast(builder, result, lanes.I64)
        nan: Any = lanes.like(bits, nans.CANONICAL[64])
        for operand in reversed(operands):
            own = lanes.cast(builder, operand, lanes.I64)
            own = builder.or_(own, lanes.like(own, nans.QUIET))
            nan = builder.select(builder.fcmp_unordered("uno", operand, operand), own, nan)
        return lanes.cast(builder, builder.select(odd, nan, bits), lanes.F64)

    return lanes.rarely(builder, odd, result, chosen)


def _by_priority(made: Instruction, values: Sequence[Any]) -> list[Any]:
    order = nans.PRIORITY.get(made.opcode, "a")
    return [values["abc".index(name)] for name in order]


def _arithmetic(e: Emitter, made: Instruction, operation: str, values: Sequence[Any]) -> Any:
    mode = made.slots.get("rnd", "rn")
    values = _inputs(e, made, values)
    result = rounded(e, mode, operation, values)
    if made.type.name == "f64":
        return propagated(e, result, _by_priority(made, values))
    if made.has("ftz") and operation in ("fmul", "fma", "fdiv"):
        result = underflowed(
            e, result, lambda: rounded(e, mode, operation, _scaled(e, operation, values))
        )
    return finished(e, made, result)


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
    if made.has("approx") and made.type.name == "f64":
        return _gross(e, a)
    one = lanes.like(a, 1.0)
    if made.type.name == "f64":
        return propagated(e, rounded(e, made.slots["rnd"], "fdiv", [one, a]), [a])
    return _arithmetic(e, made, "fdiv", [one, a])


def _gross(e: Emitter, a: Any) -> Any:
    """`rcp.approx.ftz.f64`: of the operand's upper word, and an upper word only."""
    builder = e.builder

    def upper(value: Any) -> Any:
        bits = lanes.cast(builder, value, lanes.I64)
        cut = lanes.cast(builder, builder.and_(bits, lanes.like(bits, -1 << 32)), lanes.F64)
        size = lanes.intrinsic(builder, "fabs", [cut])
        tiny = builder.fcmp_ordered("<", size, lanes.like(cut, 2.0**-1022))
        zero = lanes.intrinsic(builder, "copysign", [lanes.like(cut, 0.0), cut])
        return builder.select(tiny, zero, cut)

    short = upper(a)
    result = upper(builder.fdiv(lanes.like(short, 1.0), short))
    odd = builder.fcmp_unordered("uno", a, a)
    return builder.select(odd, lanes.like(a, float("nan")), result)


@lanewise("floating", "sqrt")
def square_root(e: Emitter, made: Instruction, a: Any) -> Any:
    """Correctly rounded."""
    return _arithmetic(e, made, "sqrt", [a])


@lanewise("floating", "rsqrt")
def reciprocal_root(e: Emitter, made: Instruction, a: Any) -> Any:
    """1 / sqrt(a), two roundings: within 2**-23 for f32."""
    (a,) = _inputs(e, made, [a])
    root = lanes.intrinsic(e.builder, "sqrt", [a])
    result = e.builder.fdiv(lanes.like(a, 1.0), root)
    if made.type.name == "f64":
        return propagated(e, result, [a])
    return finished(e, made, result)


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
    result = lanes.intrinsic(e.builder, name, values)
    if made.type.name == "f64":
        return propagated(e, result, _by_priority(made, values))
    return finished(e, made, result)


@lanewise("floating", "abs", "neg")
def sign(e: Emitter, made: Instruction, a: Any) -> Any:
    """Only the sign changes; that of f64's NaN does not."""
    (a,) = _inputs(e, made, [a])
    result = lanes.intrinsic(e.builder, "fabs", [a]) if made.opcode == "abs" else e.builder.fneg(a)
    return propagated(e, result, [a]) if made.type.name == "f64" else result


@lanewise("floating", "copysign")
def copy_sign(e: Emitter, made: Instruction, a: Any, b: Any) -> Any:
    """The sign of a on b; bits, so that payloads stay."""
    return lanes.intrinsic(e.builder, "copysign", [b, a])
