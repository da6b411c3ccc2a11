"""Moves between registers, and between address spaces."""

from __future__ import annotations

from typing import Any

from bedplate.simt import abi, lanes
from bedplate.simt.emitter import Emitter
from bedplate.simt.lowering.base import lanewise
from bedplate.simt.module import Instruction

_BASES = {"shared": abi.SHARED_BASE, "local": abi.LOCAL_BASE}


@lanewise("movement", "mov")
def move(e: Emitter, made: Instruction, a: Any) -> Any:
    """The bits."""
    return a


@lanewise("movement", "cvta")
def convert_address(e: Emitter, made: Instruction, a: Any) -> Any:
    """Global and constant addresses are generic ones; windows hold the other spaces."""
    base = _BASES.get(made.slots["space"], 0)
    if not base:
        return a
    return (e.builder.sub if made.has("to") else e.builder.add)(a, lanes.like(a, base))
