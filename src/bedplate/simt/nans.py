"""Which registers may hold a NaN of the host's kind where the ISA has one canonical NaN.

Arithmetic of PTX gives one NaN; the host's gives the payload of an operand. To make each
result canonical would cost two operations beside each multiply-add, so it is done where
somebody looks at the bits: at stores and in operations that are not arithmetic, which
themselves give the same result for any NaN. Moves of bits must keep payloads, so each
register is one of:

    BITS        never written by arithmetic; its bits are what they are
    NUMBERS     written by arithmetic only; canonical when its bits are read
    MIXED       both; a mask says which lanes were written by arithmetic last
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from bedplate.simt.graph import Graph
from bedplate.simt.module import Immediate, Instruction, Register
from bedplate.simt.uniformity import Shape

CANONICAL = {16: 0x7FFF, 32: 0x7FFFFFFF, 64: 0xFFF8000000000000}
"""The NaN that arithmetic gives.

Source: PTX ISA for f16 and f32 ("NaN results are canonical"); f64 as GPUs print 0.0/0.0.
"""


class Content(Enum):
    """What a register may hold."""

    BITS = 0
    NUMBERS = 1
    MIXED = 2


def reads_numbers(made: Instruction) -> bool:
    """Whether float operands are only taken as numbers, any NaN like the other."""
    return made.form.arithmetic or made.opcode in ("setp", "cvt")


def writes_number(made: Instruction) -> bool:
    """Whether the result is a float whose NaN the ISA makes canonical."""
    # Bits of bf16 look like another format's NaNs; its conversions make them canonical.
    written = made.outputs[0][1].name if made.outputs else ""
    return made.form.arithmetic and written in ("f16", "f32", "f64")


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
