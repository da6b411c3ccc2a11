"""Integers: every result is the ISA's, also where LLVM's operation is undefined.

Shifts by the width or more clamp, division by zero gives all ones, its remainder
too, and the most negative number over -1 wraps; inactive lanes cannot trap either.
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
    return builder.select(zero, lanes.like(a, -1), value)


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


def _field(e: Emitter, value: Any, bits: int) -> Any:
    """A place or a length: the low 8 bits, as wide as what it cuts."""
    return lanes.resized(e.builder, e.builder.and_(value, lanes.like(value, 255)), bits)


def _below(e: Emitter, count: Any, bits: int) -> Any:
    """Ones in so many low places, all of them from the width on."""
    builder = e.builder
    over = builder.icmp_unsigned(">=", count, lanes.like(count, bits))
    safe = builder.select(over, lanes.like(count, 0), count)
    ones = builder.sub(builder.shl(lanes.like(safe, 1), safe), lanes.like(safe, 1))
    return builder.select(over, lanes.like(ones, -1), ones)


@lanewise("integer", "bfe")
def extract(e: Emitter, made: Instruction, a: Any, b: Any, c: Any) -> Any:
    """A field of a, with its highest bit, or a's beyond the width, above it when signed."""
    builder, bits = e.builder, made.type.bits
    place, length = _field(e, b, bits), _field(e, c, bits)
    over = builder.icmp_unsigned(">=", place, lanes.like(place, bits))
    safe = builder.select(over, lanes.like(place, 0), place)
    moved = builder.select(over, lanes.like(a, 0), builder.lshr(a, safe))
    mask = _below(e, length, bits)
    value = builder.and_(moved, mask)
    if not made.type.signed:
        return value
    last = builder.sub(builder.add(place, length), lanes.like(place, 1))
    beyond = builder.icmp_unsigned(">=", last, lanes.like(last, bits))
    last = builder.select(beyond, lanes.like(last, bits - 1), last)
    sign = builder.ashr(
        builder.shl(a, builder.sub(lanes.like(last, bits - 1), last)), lanes.like(a, bits - 1)
    )
    # Above the width the field's bits are the sign too.
    room = builder.select(over, lanes.like(a, 0), builder.sub(lanes.like(place, bits), place))
    known = builder.and_(mask, _below(e, room, bits))
    full = builder.or_(builder.and_(moved, known), builder.and_(sign, builder.not_(known)))
    none = builder.icmp_unsigned("==", length, lanes.like(length, 0))
    return builder.select(none, lanes.like(full, 0), full)


@lanewise("integer", "bfi")
def insert(e: Emitter, made: Instruction, a: Any, b: Any, c: Any, d: Any) -> Any:
    """A field of b replaced by a's low bits; what is beyond the width is left away."""
    builder, bits = e.builder, made.type.bits
    place, length = _field(e, c, bits), _field(e, d, bits)
    over = builder.icmp_unsigned(">=", place, lanes.like(place, bits))
    safe = builder.select(over, lanes.like(place, 0), place)
    mask = builder.shl(_below(e, length, bits), safe)
    value = builder.or_(
        builder.and_(b, builder.not_(mask)), builder.and_(builder.shl(a, safe), mask)
    )
    return builder.select(over, b, value)


@lanewise("integer", "prmt")
def permute(e: Emitter, made: Instruction, a: Any, b: Any, c: Any) -> Any:
    """Four bytes of the eight of b:a, or the sign of one in all its bits."""
    builder = e.builder
    low, high = (lanes.resized(builder, value, 64) for value in (a, b))
    both = builder.or_(builder.shl(high, lanes.like(high, 32)), low)
    result = lanes.like(a, 0)
    for byte in range(4):
        chosen = builder.lshr(c, lanes.like(c, 4 * byte))
        count = builder.shl(builder.and_(chosen, lanes.like(c, 7)), lanes.like(c, 3))
        moved = builder.lshr(both, lanes.resized(builder, count, 64))
        value = builder.and_(lanes.resized(builder, moved, 32), lanes.like(a, 255))
        sign = builder.icmp_unsigned(
            "!=", builder.and_(value, lanes.like(a, 128)), lanes.like(a, 0)
        )
        signed = builder.select(sign, lanes.like(a, 255), lanes.like(a, 0))
        repeats = builder.icmp_unsigned(
            "!=", builder.and_(chosen, lanes.like(c, 8)), lanes.like(c, 0)
        )
        value = builder.select(repeats, signed, value)
        result = builder.or_(result, builder.shl(value, lanes.like(value, 8 * byte)))
    return result
