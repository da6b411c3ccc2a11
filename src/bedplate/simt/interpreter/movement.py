"""Moves, and conversions of addresses."""

from __future__ import annotations

from bedplate.simt import abi
from bedplate.simt.interpreter.base import Lanes, each, evaluates
from bedplate.simt.module import Instruction

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
