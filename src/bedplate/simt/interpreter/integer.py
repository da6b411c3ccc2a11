"""Integers, by Python's own, which do not wrap until told."""

from __future__ import annotations

from bedplate.simt.interpreter.base import Lanes, each, evaluates
from bedplate.simt.module import Instruction
from bedplate.simt.scalar import Scalar, widened


def _clamped(value: int, kind: Scalar) -> int:
    low = -(1 << (kind.bits - 1)) if kind.signed else 0
    high = (1 << (kind.bits - int(kind.signed))) - 1
    return min(max(value, low), high)


@evaluates("integer", "add", "sub")
def add_sub(made: Instruction, a: Lanes, b: Lanes) -> Lanes:
    """Modulo the width, or saturated."""
    sign = 1 if made.opcode == "add" else -1

    def one(x: int, y: int) -> int:
        total = x + sign * y
        return _clamped(total, made.type) if made.has("sat") else total

    return each(one, made.type.dtype, a, b)


def _product(made: Instruction, x: int, y: int) -> int:
    """The half of the product that is asked for, or all of it."""
    return x * y >> made.type.bits if made.slots.get("half") == "hi" else x * y


@evaluates("integer", "mul")
def multiply(made: Instruction, a: Lanes, b: Lanes) -> Lanes:
    """lo, hi or wide."""
    dtype = widened(made.type).dtype if made.has("wide") else made.type.dtype
    return each(lambda x, y: _product(made, x, y), dtype, a, b)


@evaluates("integer", "mad")
def multiply_add(made: Instruction, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """A product and a sum."""
    dtype = widened(made.type).dtype if made.has("wide") else made.type.dtype

    def one(x: int, y: int, z: int) -> int:
        total = _product(made, x, y) + z
        return _clamped(total, made.type) if made.has("sat") else total

    return each(one, dtype, a, b, c)


@evaluates("integer", "div", "rem")
def divide(made: Instruction, a: Lanes, b: Lanes) -> Lanes:
    """Toward zero; by zero all ones, also as remainder, which is an H200's answer."""

    def one(x: int, y: int) -> int:
        if y == 0:
            return -1
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        return quotient if made.opcode == "div" else x - quotient * y

    return each(one, made.type.dtype, a, b)


@evaluates("integer", "abs")
def absolute(made: Instruction, a: Lanes) -> Lanes:
    """The most negative number stays, by wrapping."""
    return each(abs, made.type.dtype, a)


@evaluates("integer", "neg")
def negate(made: Instruction, a: Lanes) -> Lanes:
    """Two's complement."""
    return each(lambda x: -x, made.type.dtype, a)


@evaluates("integer", "min")
def smaller(made: Instruction, a: Lanes, b: Lanes) -> Lanes:
    """The smaller."""
    return each(min, made.type.dtype, a, b)


@evaluates("integer", "max")
def larger(made: Instruction, a: Lanes, b: Lanes) -> Lanes:
    """The larger."""
    return each(max, made.type.dtype, a, b)


@evaluates("integer", "and")
def both(made: Instruction, a: Lanes, b: Lanes) -> Lanes:
    """Bits, and predicates."""
    return a & b


@evaluates("integer", "or")
def either(made: Instruction, a: Lanes, b: Lanes) -> Lanes:
    """Bits, and predicates."""
    return a | b


@evaluates("integer", "xor")
def differing(made: Instruction, a: Lanes, b: Lanes) -> Lanes:
    """Bits, and predicates."""
    return a ^ b


@evaluates("integer", "not")
def invert(made: Instruction, a: Lanes) -> Lanes:
    """All bits."""
    return ~a


@evaluates("integer", "cnot")
def logical_not(made: Instruction, a: Lanes) -> Lanes:
    """1 for 0, else 0."""
    return each(lambda x: int(x == 0), made.type.dtype, a)


@evaluates("integer", "shl")
def shift_left(made: Instruction, a: Lanes, b: Lanes) -> Lanes:
    """A count beyond the width moves everything out."""
    return each(lambda x, n: x << min(n, made.type.bits), made.type.dtype, a, b)


@evaluates("integer", "shr")
def shift_right(made: Instruction, a: Lanes, b: Lanes) -> Lanes:
    """Python's integers keep their sign, which is what signed types want."""
    return each(lambda x, n: x >> min(n, made.type.bits), made.type.dtype, a, b)


@evaluates("integer", "shf")
def funnel(made: Instruction, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """32 bits of the 64 of b:a."""

    def one(low: int, high: int, n: int) -> int:
        n = min(n, 32) if made.slots["mode"] == "clamp" else n & 31
        pair = high << 32 | low
        return pair >> n if made.slots["way"] == "r" else pair << n >> 32

    return each(one, "u4", a, b, c)


@evaluates("integer", "popc")
def population(made: Instruction, a: Lanes) -> Lanes:
    """How many bits are set."""
    return each(int.bit_count, "u4", a)


@evaluates("integer", "clz")
def leading_zeros(made: Instruction, a: Lanes) -> Lanes:
    """The width for 0."""
    return each(lambda x: made.type.bits - x.bit_length(), "u4", a)


@evaluates("integer", "brev")
def reverse(made: Instruction, a: Lanes) -> Lanes:
    """The last bit first."""
    width = made.type.bits
    return each(lambda x: int(f"{x:0{width}b}"[::-1], 2), made.type.dtype, a)


@evaluates("integer", "bfind")
def find(made: Instruction, a: Lanes) -> Lanes:
    """The place of the highest bit that is not sign."""

    def one(x: int) -> int:
        place = (x if x >= 0 else ~x).bit_length() - 1
        return place if place < 0 or not made.has("shiftamt") else made.type.bits - 1 - place

    return each(one, "u4", a)


@evaluates("integer", "bfe")
def extract(made: Instruction, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Bit by bit, as the ISA has it."""
    bits = made.type.bits

    def one(x: int, place: int, length: int) -> int:
        place, length = place & 255, length & 255
        sign = 0
        if made.type.signed and length:
            sign = x >> min(place + length - 1, bits - 1) & 1
        value = 0
        for bit in range(bits):
            inside = bit < length and place + bit < bits
            value |= (x >> (place + bit) & 1 if inside else sign) << bit
        return value

    return each(one, made.type.dtype, a, b, c)


@evaluates("integer", "bfi")
def insert(made: Instruction, a: Lanes, b: Lanes, c: Lanes, d: Lanes) -> Lanes:
    """Bit by bit, as the ISA has it."""

    def one(x: int, y: int, place: int, length: int) -> int:
        place, length = place & 255, length & 255
        for bit in range(min(length, made.type.bits - place)):
            y = y & ~(1 << (place + bit)) | (x >> bit & 1) << (place + bit)
        return y

    return each(one, made.type.dtype, a, b, c, d)


@evaluates("integer", "prmt")
def permute(made: Instruction, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Four bytes of the eight of b:a, or the sign of one in all its bits."""

    def one(x: int, y: int, control: int) -> int:
        source = (x | y << 32).to_bytes(8, "little")
        chosen = [control >> 4 * byte & 15 for byte in range(4)]
        picked = [source[at & 7] if at < 8 else 255 * (source[at & 7] >> 7) for at in chosen]
        return int.from_bytes(bytes(picked), "little")

    return each(one, "u4", a, b, c)
