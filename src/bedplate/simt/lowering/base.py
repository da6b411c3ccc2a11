"""The seam of the fast machine: how an instruction class says what its code is.

A lowering is registered under the opcode of the table:

    @lanewise("add")        from values to values; called with scalars when the result is
                            the same in all lanes (or a pattern over them), else vectors
    @lowers("ld")           anything else; reads, writes and masks through the emitter

The emitter's part of the seam: `read`, `write`, `mask`, `shape`, `fault`, `builder`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bedplate.simt.emitter import Emitter
    from bedplate.simt.module import Instruction

Lowering = Callable[["Emitter", "Instruction"], None]
Lanewise = Callable[..., Any]
LOWERINGS: dict[str, Lowering] = {}
LANEWISE: dict[tuple[str, str], Lanewise] = {}
"""By the group and the opcode of a form."""


def lanewise(group: str, *opcodes: str) -> Callable[[Lanewise], Lanewise]:
    """Register `function(emitter, instruction, *operands) -> result(s)`."""

    def register(function: Lanewise) -> Lanewise:
        for opcode in opcodes:
            LANEWISE[group, opcode] = function
        return function

    return register


def lowers(*opcodes: str) -> Callable[[Lowering], Lowering]:
    """Register `function(emitter, instruction)`."""

    def register(function: Lowering) -> Lowering:
        for opcode in opcodes:
            LOWERINGS[opcode] = function
        return function

    return register
