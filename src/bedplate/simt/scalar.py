"""The scalar types of PTX.

A register holds bits; an instruction's type says how it reads them. So both engines
keep unsigned integers of the register's width, and a type is a view of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Kind = Literal["pred", "bits", "unsigned", "signed", "float"]
LANES = 32
"""Threads in a warp, for every architecture that PTX names."""
FULL = 0xFFFFFFFF
"""The mask of all lanes."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """One scalar type: its name in PTX, what it means, and its width in bits."""

    name: str
    kind: Kind
    bits: int

    @property
    def bytes(self) -> int:
        """Size in memory."""
        return self.bits // 8

    @property
    def mask(self) -> int:
        """All bits set."""
        return (1 << self.bits) - 1

    @property
    def signed(self) -> bool:
        """Whether comparisons, shifts right and extensions look at the sign."""
        return self.kind == "signed"

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy type that views a register's bits as this type."""
        return np.dtype(_DTYPES[self.name])


_DTYPES = {
    "pred": "?",
    **{f"b{bits}": f"u{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"u{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": f"i{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"f{bits // 8}" for bits in (16, 32, 64)},
    # numpy has no such types; these are read as bits and widened by the instruction.
    **dict.fromkeys(("bf16", "f16x2", "bf16x2", "tf32", "b128"), "u4"),
    "bf16": "u2",
}

SCALARS: dict[str, Scalar] = {
    "pred": Scalar("pred", "pred", 1),
    **{f"b{bits}": Scalar(f"b{bits}", "bits", bits) for bits in (8, 16, 32, 64, 128)},
    **{f"u{bits}": Scalar(f"u{bits}", "unsigned", bits) for bits in (8, 16, 32, 64)},
    **{f"s{bits}": Scalar(f"s{bits}", "signed", bits) for bits in (8, 16, 32, 64)},
    **{f"f{bits}": Scalar(f"f{bits}", "float", bits) for bits in (16, 32, 64)},
    "bf16": Scalar("bf16", "float", 16),
    "tf32": Scalar("tf32", "float", 32),
    "f16x2": Scalar("f16x2", "float", 32),
    "bf16x2": Scalar("bf16x2", "float", 32),
}


def widened(scalar: Scalar) -> Scalar:
    """The type of twice the width, as `mul.wide` gives it."""
    return SCALARS[f"{scalar.name[0]}{2 * scalar.bits}"]


def fits(register: Scalar, wanted: Scalar, *, wider: bool = False) -> bool:
    """Whether a register may stand where an instruction wants `wanted`.

    Any type of the same width will do when one of them is untyped or both are integers;
    `wider` also takes wider registers, as loads, stores and conversions do.

    Source: PTX ISA, "Operand Type Checking", "Operand Size Exceeding Instruction-Type Size".
    """
    if register.kind == "pred" or wanted.kind == "pred":
        return register.kind == wanted.kind
    if register.bits != wanted.bits and not (wider and register.bits > wanted.bits):
        return False
    if "bits" in (register.kind, wanted.kind):
        return True
    return (register.kind == "float") == (wanted.kind == "float")
