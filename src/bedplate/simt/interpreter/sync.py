"""Votes, shuffles and the other operations in which lanes meet, lane by lane."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce as folded

import numpy as np

from bedplate.simt import abi
from bedplate.simt.interpreter.base import executes
from bedplate.simt.interpreter.engine import Fault, WarpState
from bedplate.simt.lowering.sync import source_lane
from bedplate.simt.module import Instruction, Operand, Register
from bedplate.simt.scalar import LANES, SCALARS, Scalar

_REDUCTIONS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "min": min,
    "max": max,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
_B32, _PRED = SCALARS["b32"], SCALARS["pred"]


def _read(warp: WarpState, made: Instruction, name: str, kind: Scalar) -> list[int]:
    operand: Operand | None = made.operands[name]
    assert operand is not None
    return [int(value) for value in warp.read(operand, kind).tolist()]


def _here(warp: WarpState, made: Instruction) -> dict[int, int]:
    """For each active lane the mask that it names; raises `Fault` if one is not here."""
    named = _read(warp, made, "m", _B32)
    missing = warp.live & ~warp.mask
    for lane in warp.lanes():
        if named[lane] & missing or not named[lane] >> lane & 1:
            raise Fault(abi.Code.SYNC, made, warp.index, lane)
    return {lane: named[lane] & warp.mask for lane in warp.lanes()}


def _give(warp: WarpState, made: Instruction, values: dict[int, int], name: str = "d") -> None:
    register = made.operands.get(name)
    if isinstance(register, Register):
        lanes = [values.get(lane, 0) for lane in range(LANES)]
        kind = "?" if register.type.kind == "pred" else f"u{register.type.bytes}"
        warp.write(made, register, np.array(lanes, kind))


@executes("activemask")
def active_mask(warp: WarpState, made: Instruction) -> None:
    """The lanes that run this instruction together."""
    _give(warp, made, dict.fromkeys(warp.lanes(), warp.mask))


@executes("vote")
def vote(warp: WarpState, made: Instruction) -> None:
    """Of the lanes that each lane names."""
    said = sum(1 << lane for lane, yes in enumerate(_read(warp, made, "a", _PRED)) if yes)
    results = {}
    for lane, here in _here(warp, made).items():
        yes = here & said
        results[lane] = {
            "ballot": yes,
            "all": int(yes == here),
            "any": int(yes != 0),
            "uni": int(yes in (0, here)),
        }[made.slots["mode"]]
    _give(warp, made, results)


@executes("shfl")
def shuffle(warp: WarpState, made: Instruction) -> None:
    """A lane that is not here gives nothing: its reader keeps its own value."""
    _here(warp, made)
    a, b, c = (_read(warp, made, name, _B32) for name in "abc")
    values, inside = {}, {}
    for lane in warp.lanes():
        source, good = source_lane(made.slots["mode"], lane, b[lane], c[lane])
        values[lane] = a[source] if warp.mask >> source & 1 else a[lane]
        inside[lane] = int(good)
    _give(warp, made, values)
    _give(warp, made, inside, "p")


@executes("match")
def match(warp: WarpState, made: Instruction) -> None:
    """For each lane the named lanes with its value."""
    a = _read(warp, made, "a", made.type)
    _give(
        warp,
        made,
        {
            lane: sum(1 << n for n in range(LANES) if here >> n & 1 and a[n] == a[lane])
            for lane, here in _here(warp, made).items()
        },
    )


@executes("redux")
def reduce(warp: WarpState, made: Instruction) -> None:
    """Over the lanes that the lowest lane here names."""
    here = _here(warp, made)
    if not here:
        return
    a, named = _read(warp, made, "a", made.type), here[min(here)]
    total = folded(_REDUCTIONS[made.slots["op"]], [a[n] for n in range(LANES) if named >> n & 1])
    _give(warp, made, dict.fromkeys(here, total % (1 << 32)))


@executes("bar")
def warp_barrier(warp: WarpState, made: Instruction) -> None:
    """Lanes that run together need no waiting; those that are named must be here."""
    if "warp" in made.slots:
        _here(warp, made)
        return
    # Behind a barrier that reduces.
    total = warp.result
    value = {"popc": total, "or": int(total != 0), "and": int(total == 0)}[made.slots["op"]]
    _give(warp, made, dict.fromkeys(warp.lanes(), value))


@executes("membar")
def fence(warp: WarpState, made: Instruction) -> None:
    """Nothing: one lane at a time touches memory here."""
