"""Carries, by Python's integers: what does not fit is what is left after the width."""

from __future__ import annotations

import numpy as np

from bedplate.simt.interpreter.base import Lanes, evaluates
from bedplate.simt.module import Instruction


@evaluates("carry", "add", "addc", "sub", "subc")
def add_sub(
    made: Instruction, a: Lanes, b: Lanes, carry: Lanes | None = None
) -> tuple[Lanes, Lanes]:
    """The sum or difference of unsigned words, and whether it left the width."""
    sign = 1 if made.opcode.startswith("add") else -1
    return _combined(made, a, [sign * word for word in _words(made, b)], sign, carry)


@evaluates("carry", "mad", "madc")
def multiply_add(
    made: Instruction, a: Lanes, b: Lanes, c: Lanes, carry: Lanes | None = None
) -> tuple[Lanes, Lanes]:
    """A half of the product, by the type's sign, and a sum with carry."""
    bits = made.type.bits
    shift = bits if made.slots["half"] == "hi" else 0
    products = [x * y >> shift for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    halves = np.array([product % (1 << bits) for product in products], f"u{bits // 8}")
    return _combined(made, halves, _words(made, c), 1, carry)


def _words(made: Instruction, value: Lanes) -> list[int]:
    return [int(word) % (1 << made.type.bits) for word in value.tolist()]


def _combined(
    made: Instruction, a: Lanes, addends: list[int], sign: int, carry: Lanes | None
) -> tuple[Lanes, Lanes]:
    bits = made.type.bits
    carries = [0] * len(addends) if carry is None else carry.tolist()
    rows = zip(_words(made, a), addends, carries, strict=True)
    totals = [x + y + sign * int(c) for x, y, c in rows]
    result = np.array([total % (1 << bits) for total in totals], f"u{bits // 8}")
    return result, np.array([not 0 <= total < 1 << bits for total in totals])
