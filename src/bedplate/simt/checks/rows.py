"""The accesses of one block as arrays: a row for each lane of each access, in time order.

A generic address is turned into the space that it lies in, so every row has a space and an
address of that space; a row of local memory is told apart by its thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bedplate.simt import abi
from bedplate.simt.checks.log import SPACE_CODES, STORES, Kind
from bedplate.simt.module import Address, Instruction
from bedplate.simt.scalar import LANES

Array = np.ndarray[Any, np.dtype[Any]]
GLOBAL, SHARED, LOCAL = 0, 1, 2
SPACES = ("global", "shared", "local")
_ATOMICS = ("atom", "red")
_STRONG = ("relaxed", "acquire", "release", "acq_rel")


@dataclass(frozen=True)
class Rows:
    """`event` is the place in the log, `write` and `read` whether memory is changed or used.

    `atomic` rows do not race with each other.
    """

    event: Array
    instruction: Array
    warp: Array
    lane: Array
    space: Array
    address: Array
    size: Array
    write: Array
    read: Array
    atomic: Array
    value: Array

    @property
    def thread(self) -> Array:
        """The thread's number in its block."""
        return self.warp * LANES + self.lane

    def __len__(self) -> int:
        return len(self.event)


@dataclass(frozen=True)
class Traits:
    """What is known of each instruction, by its number; `write` and `read`: does both."""

    space: Array
    size: Array
    write: Array
    read: Array
    atomic: Array

    @staticmethod
    def of(instructions: Sequence[Instruction]) -> Traits:
        """From the instructions of a function."""
        table = [_trait(made) for made in instructions]
        columns = [np.array(column) for column in zip(*table, strict=True)]
        return Traits(*columns)

    def granule(self, space: int) -> int:
        """The largest unit that all accesses which may be of a space consist of."""
        chosen = self.size[((self.space == space) | (self.space < 0)) & (self.size > 0)]
        return int(chosen.min()) if len(chosen) else 1


def _trait(made: Instruction) -> tuple[int, int, bool, bool, bool]:
    named = made.slots.get("space", "generic")
    if not isinstance(made.operands.get("m"), Address) or named == "param":
        return GLOBAL, 0, False, False, False
    space = {"shared": SHARED, "local": LOCAL, "generic": -1}.get(named, GLOBAL)
    count = int(made.slots["vec"][1]) if "vec" in made.slots else 1
    atomic = made.opcode in _ATOMICS
    strong = atomic or any(made.has(word) or word in made.slots.values() for word in _STRONG)
    if made.opcode not in ("ld", "st", *_ATOMICS):
        return -1, 4, False, False, False  # copies and matrices, by words at least
    size = made.type.bits // 8 * count
    return space, size, atomic, atomic, strong


def rows(events: Any, traits: Traits) -> Rows:
    """The rows of a block's log."""
    chosen = np.flatnonzero(events["kind"] == Kind.ACCESS)
    some = events[chosen]
    on = (some["mask"][:, None] >> np.arange(LANES, dtype=np.uint32)) & 1
    row, lane = np.nonzero(on)
    instruction = some["instruction"][row].astype(np.int64)
    address = some["addresses"][row, lane]
    space = some["number"][row].astype(np.int64)
    space[space == SPACE_CODES["generic"]] = -1
    count = some["count"][row].astype(np.int64)
    stores = count >= STORES
    for base, found in ((abi.SHARED_BASE, SHARED), (abi.LOCAL_BASE, LOCAL)):
        inside = (space < 0) & (address - np.uint64(base) < np.uint64(1 << 32))
        space[inside] = found
        address[inside] -= np.uint64(base)
    space[space < 0] = GLOBAL
    return Rows(
        chosen[row],
        instruction,
        some["warp"][row].astype(np.int64),
        lane,
        space,
        address,
        count % STORES,
        stores | traits.write[instruction],
        ~stores | traits.read[instruction],
        traits.atomic[instruction],
        some["values"][row, lane],
    )
