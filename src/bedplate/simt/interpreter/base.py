"""The seam of the reference: what each instruction does to 32 lanes.

    @evaluates("integer", "add")   from arrays of 32 values, viewed as the operand's type,
                                   to the result(s); lanes do not meet
    @executes("ld")                anything else, through the warp that runs it

Values are numpy arrays; predicates are booleans. What inactive lanes compute is thrown
away. Clarity before speed: many operations go through Python's integers or fractions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from bedplate.simt.interpreter.engine import WarpState
    from bedplate.simt.module import Instruction

Lanes = np.ndarray[Any, np.dtype[Any]]
Evaluate = Callable[..., Any]
Execute = Callable[["WarpState", "Instruction"], None]
EVALUATES: dict[tuple[str, str], Evaluate] = {}
EXECUTES: dict[str, Execute] = {}


def evaluates(group: str, *opcodes: str) -> Callable[[Evaluate], Evaluate]:
    """Register `function(instruction, *operands) -> result(s)`."""

    def register(function: Evaluate) -> Evaluate:
        for opcode in opcodes:
            EVALUATES[group, opcode] = function
        return function

    return register


def executes(*opcodes: str) -> Callable[[Execute], Execute]:
    """Register `function(warp, instruction)`."""

    def register(function: Execute) -> Execute:
        for opcode in opcodes:
            EXECUTES[opcode] = function
        return function

    return register


def each(function: Callable[..., int], dtype: Any, *operands: Lanes) -> Lanes:
    """Lane by lane through Python's integers, wrapped to `dtype`."""
    rows: Sequence[Sequence[int]] = [operand.tolist() for operand in operands]
    values = [function(*row) for row in zip(*rows, strict=True)]
    kind = np.dtype(dtype)
    whole = 1 << (8 * kind.itemsize)
    unsigned = np.array([value % whole for value in values], f"u{kind.itemsize}")
    return unsigned.view(kind)
