"""Moves, conversions of integers, and conversions of addresses."""

from __future__ import annotations

import numpy as np

from bedplate.simt import abi
from bedplate.simt.interpreter.base import Lanes, each, evaluates
from bedplate.simt.module import Instruction, Register

_BASES = {"shared": abi.SHARED_BASE, "local": abi.LOCAL_BASE}


@evaluates("movement", "mov")
def move(made: Instruction, a: Lanes) -> Lanes:
    """The bits."""
    return a


@evaluates("movement", "cvta")
def convert_address(made: Instruction, a: Lanes) -> Lanes:
    """Windows hold shared and local memory; other spaces are generic addresses."""
    base = _BASES.get(made.slots["space"], 0)
    return each(lambda x: x - base if made.has("to") else x + base, a.dtype, a)


@evaluates("conversion", "cvt")
def convert(made: Instruction, a: Lanes) -> Lanes:
    """To the destination's type, by wrapping or saturating, then to its register's width."""
    to = made.types["T"]
    output = made.operands["d"]
    if made.has("sat"):
        low = -(1 << (to.bits - 1)) if to.signed else 0
        high = (1 << (to.bits - int(to.signed))) - 1
        value = each(lambda x: min(max(x, low), high), to.dtype, a)
    else:
        value = each(lambda x: x, to.dtype, a)
    if isinstance(output, Register) and output.type.bits > to.bits:
        return value.astype(f"{'i' if to.signed else 'u'}{output.type.bytes}")
    return np.asarray(value)
