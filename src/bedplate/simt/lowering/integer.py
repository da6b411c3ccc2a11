"""Integers: every result is the ISA's, also where LLVM's operation is undefined.

Shifts by the width or more clamp, division by zero gives all ones (its remainder the
dividend), and the most negative number over -1 wraps; inactive lanes cannot trap either.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from bedplate.simt import lanes
from bedplate.simt.emitter import Emitter
from bedplate.simt.lowering.base import lanewise
from bedplate.simt.module import Instruction


@lanewise("integer", "add", "sub")
def add_sub(e: Emitter, made: Instruction, a: Any, b: Any) -> Any:
    """Modulo the width, or saturated for s32."""
    adding = made.opcode == "add"
    if made.has("sat"):
        return lanes.intrinsic(e.builder, "sadd.sat" if adding else "ssub.sat", [a, b])
    return e.builder.add(a, b) if adding else e.builder.sub(a, b)


def _product(e: Emitter, made: Instruction, a: Any, b: Any) -> Any:
    """Twice as wide."""
    bits, signed = made.type.bits, made.type.signed
    wide = [lanes.resized(e.builder, value, 2 * bits, signed=signed) for value in (a, b)]
    return e.builder.mul(*wide)


def high_half(e: Emitter, made: Instruction, a: Any, b: Any) -> Any:
    """The upper half of a product."""
    bits = made.type.bits
    product = _product(e, made, a, b)
    return lanes.resized(e.builder, e.builder.lshr(product, lanes.like(product, bits)), bits)


@lanewise("integer", "mul")
def multiply(e: Emitter, made: Instruction, a: Any, b: Any) -> Any:
    """The low or the high half, or all of it."""
    if made.has("wide"):
        return _product(e, made, a, b)
    return e.builder.mul(a, b) if made.slots["half"] == "lo" else high_half(e, made, a, b)


@lanewise("integer", "mad")
def multiply_add(e: Emitter, made: Instruction, a: Any, b: Any, c: Any) -> Any:
    """A product and a sum, saturated when asked for."""
    product = multiply(e, made, a, b)
    if made.has("sat"):
        return lanes.intrinsic(e.builder, "sadd.sat", [product, c])
    return e.builder.add(product, c)


@lanewise("integer", "div", "rem")
def divide(e: Emitter, made: Instruction, a: Any, b: Any) -> Any:
    """Division that never traps."""
    builder, dividing = e.builder, made.opcode == "div"
    zero = builder.icmp_unsigned("==", b, lanes.like(b, 0))
    safe = builder.select(zero, lanes.like(b, 1), b)
    if not made.type.signed:
        value = (builder.udiv if dividing else builder.urem)(a, safe)
    else:
        minus = builder.icmp_unsigned("==", b, lanes.like(b, -1))
        safe = builder.select(minus, lanes.like(b, 1), safe)
        value = (builder.sdiv if dividing else builder.srem)(a, safe)
        turned = builder.neg(a) if dividing else lanes.like(a, 0)
        value = builder.select(minus, turned, value)
    return builder.select(zero, lanes.like(a, -1) if dividing else a, value)


@lanewise("integer", "abs")
def absolute(e: Emitter, made: Instruction, a: Any) -> Any:
    """The most negative number stays."""
    negative = e.builder.icmp_signed("<", a, lanes.like(a, 0))
    return e.builder.select(negative, e.builder.neg(a), a)


@lanewise("integer", "neg")
def negate(e: Emitter, made: Instruction, a: Any) -> Any:
    """Two's complement."""
    return e.builder.neg(a)


@lanewise("integer", "min", "max")
def extreme(e: Emitter, made: Instruction, a: Any, b: Any) -> Any:
    """The smaller or the larger."""
    return lanes.intrinsic(e.builder, f"{'s' if made.type.signed else 'u'}{made.opcode}", [a, b])


@lanewise("integer", "and", "or", "xor")
def bitwise(e: Emitter, made: Instruction, a: Any, b: Any) -> Any:
    """Bits, and predicates."""
    return {"and": e.builder.and_, "or": e.builder.or_, "xor": e.builder.xor}[made.opcode](a, b)


@lanewise("integer", "not")
def invert(e: Emitter, made: Instruction, a: Any) -> Any:
    """All bits."""
    return e.builder.not_(a)


@lanewise("integer", "cnot")
def logical_not(e: Emitter, made: Instruction, a: Any) -> Any:
    """1 for 0, else 0."""
    zero = e.builder.icmp_unsigned("==", a, lanes.like(a, 0))
    return e.builder.zext(zero, a.type)


@lanewise("integer", "shl", "shr")
def shift(e: Emitter, made: Instruction, a: Any, b: Any) -> Any:
    """A count beyond the width moves everything out; the sign stays for signed types."""
    builder, bits = e.builder, made.type.bits
    large = builder.icmp_unsigned(">=", b, lanes.like(b, bits))
    # The count itself is narrower or wider than what is shifted.
    count = lanes.resized(builder, builder.select(large, lanes.like(b, bits - 1), b), bits)
    if made.opcode == "shr" and made.type.signed:
        return builder.ashr(a, count)
    moved = builder.shl(a, count) if made.opcode == "shl" else builder.lshr(a, count)
    return builder.select(large, lanes.like(a, 0), moved)


@lanewise("integer", "shf")
def funnel(e: Emitter, made: Instruction, a: Any, b: Any, c: Any) -> Any:
    """32 bits of the 64 of b:a, moved left or right."""
    builder = e.builder
    if made.slots["mode"] == "clamp":
        over = builder.icmp_unsigned(">", c, lanes.like(c, 32))
        count = builder.select(over, lanes.like(c, 32), c)
    else:
        count = builder.and_(c, lanes.like(c, 31))
    low, high = (lanes.resized(builder, value, 64) for value in (a, b))
    both = builder.or_(builder.shl(high, lanes.like(high, 32)), low)
    count = lanes.resized(builder, count, 64)
    if made.slots["way"] == "r":
        return lanes.resized(builder, builder.lshr(both, count), 32)
    moved = builder.shl(both, count)
    return lanes.resized(builder, builder.lshr(moved, lanes.like(moved, 32)), 32)


@lanewise("integer", "popc")
def population(e: Emitter, made: Instruction, a: Any) -> Any:
    """How many bits are set."""
    return lanes.resized(e.builder, lanes.intrinsic(e.builder, "ctpop", [a]), 32)


def _leading_zeros(e: Emitter, a: Any) -> Any:
    defined = ir.Constant(lanes.I1, 0)
    name = f"llvm.ctlz.{lanes.suffix(a.type)}"
    function = lanes.declared(e.module, name, a.type, [a, defined])
    return e.builder.call(function, [a, defined])


@lanewise("integer", "clz")
def leading_zeros(e: Emitter, made: Instruction, a: Any) -> Any:
    """The width for 0."""
    return lanes.resized(e.builder, _leading_zeros(e, a), 32)


@lanewise("integer", "brev")
def reverse(e: Emitter, made: Instruction, a: Any) -> Any:
    """The last bit first."""
    return lanes.intrinsic(e.builder, "bitreverse", [a])


@lanewise("integer", "bfind")
def find(e: Emitter, made: Instruction, a: Any) -> Any:
    """The place of the highest bit that is not sign; all ones when there is none."""
    builder, bits = e.builder, made.type.bits
    if made.type.signed:
        a = builder.xor(a, builder.ashr(a, lanes.like(a, bits - 1)))
    zeros = _leading_zeros(e, a)
    none = builder.icmp_unsigned("==", a, lanes.like(a, 0))
    place = zeros if made.has("shiftamt") else builder.sub(lanes.like(zeros, bits - 1), zeros)
    return lanes.resized(builder, builder.select(none, lanes.like(place, -1), place), 32)
