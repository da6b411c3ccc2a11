"""Which registers may hold a NaN of the host's kind where the ISA has one canonical NaN.

Arithmetic of f16 and f32 gives one NaN; the host's gives the payload of an operand. To make
each result canonical would cost two operations beside each multiply-add, so it is done where
somebody looks at the bits: at stores and in operations that are not arithmetic, which
themselves give the same result for any NaN. Moves of bits must keep payloads, so each
register is one of:

    BITS        never written by arithmetic; its bits are what they are
    NUMBERS     written by arithmetic only; canonical when its bits are read
    MIXED       both; a mask says which lanes were written by arithmetic last

Arithmetic of f64 hands on the payload of an operand, made quiet, which its lowering does at
once, so registers of 64 bits are always BITS. Which operand: `PRIORITY`, as an H200 does.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from bedplate.simt.graph import Graph
from bedplate.simt.module import Immediate, Instruction, Register
from bedplate.simt.uniformity import Shape

CANONICAL = {16: 0x7FFF, 32: 0x7FFFFFFF, 64: 0xFFF8000000000000}
"""The NaN that arithmetic gives; of f64 where no operand is one.

Source: PTX ISA for f16 and f32 ("NaN results are canonical"); for f64 an H200.
"""
QUIET = 1 << 51
"""The bit of f64 that a NaN has after arithmetic."""
PRIORITY = {"add": "ba", "sub": "ba", "mul": "ba", "min": "ba", "max": "ba"}
PRIORITY |= {"fma": "bca", "mad": "bca", "div": "ab"}
"""Of f64's operands the first that is a NaN gives the result its payload and sign."""


class Content(Enum):
    """What a register may hold."""

    BITS = 0
    NUMBERS = 1
    MIXED = 2


def reads_numbers(made: Instruction) -> bool:
    """Whether float operands are only taken as numbers, any NaN like the other."""
    if made.opcode == "cvt":
        return made.form.arithmetic or made.types["T"].kind != "float"
    return made.form.arithmetic or made.opcode == "setp"


def writes_number(made: Instruction) -> bool:
    """Whether the result is a float whose NaN the ISA makes canonical."""
    # Bits of bf16 look like another format's NaNs; its conversions make them canonical.
    written = made.outputs[0][1].name if made.outputs else ""
    return made.form.arithmetic and written in ("f16", "f32")


def of_conversion(made: Instruction) -> int:
    """What a conversion to an integer gives for a NaN: 0, or the highest bit of wide ones.

    Source: PTX ISA, "cvt"; the same on an H200.
    """
    to, source = made.types["T"], made.types["U"]
    return 1 << (to.bits - 1) if 64 in (to.bits, source.bits) else 0


def analyse(graph: Graph, shapes: Sequence[Shape]) -> list[Content]:
    """The content of each register; one that is kept as a scalar is always BITS."""
    count = len(graph.function.registers)
    numbers, bits = [False] * count, [False] * count
    changed = True
    while changed:
        changed = False
        for block in graph.blocks:
            for made in block.all:
                for register, _ in made.outputs:
                    index = register.index
                    before = numbers[index], bits[index]
                    source = made.operands.get("a") if made.opcode == "mov" else None
                    if writes_number(made):
                        numbers[index] = True
                    elif isinstance(source, Register) and shapes[source.index] is None:
                        numbers[index] |= numbers[source.index]
                        bits[index] |= bits[source.index]
                    elif not _number(made):
                        bits[index] = True
                    changed |= before != (numbers[index], bits[index])
    kinds = {(True, True): Content.MIXED, (True, False): Content.NUMBERS}
    return [
        kinds.get((numbers[i], bits[i]), Content.BITS) if shapes[i] is None else Content.BITS
        for i in range(count)
    ]


def _number(made: Instruction) -> bool:
    """Whether a move of a constant moves something that is no NaN at all."""
    operand = made.operands.get("a")
    if made.opcode != "mov" or not isinstance(operand, Immediate):
        return False
    width = made.outputs[0][0].type.bits
    exponent = {16: 0x7C00, 32: 0x7F800000, 64: 0x7FF0000000000000}.get(width, 0)
    return operand.bits & exponent != exponent
