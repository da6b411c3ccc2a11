"""Warps of the reference whose lanes may wait anywhere; the fast one is `simt.scheduled`."""

from __future__ import annotations

import numpy as np

from bedplate.simt import abi, schedule
from bedplate.simt.divergence import postdominators
from bedplate.simt.graph import EXIT, Block, is_sync
from bedplate.simt.interpreter.engine import BlockState, Fault, WarpState
from bedplate.simt.scalar import FULL, SCALARS


class Turns(WarpState):
    """`its`: the lowest block first, and a turn for those above after some ways back."""

    def __init__(self, block: BlockState, index: int) -> None:
        super().__init__(block, index)
        graph = self.grid.graph
        self.blocks = graph.blocks
        self.syncs = {b.index for b in self.blocks if b.instructions and is_sync(b.instructions[0])}
        self.spinning = schedule.spinning(graph)
        self.tried: dict[int, int] = {}
        self.turns = self.start = 0

    def run(self) -> None:
        """Until no lane can go on, or others are to have their turn."""
        with np.errstate(all="ignore"):
            while able := self._able():
                if not self._step(able):
                    return
        self._nothing()

    def _able(self) -> list[int]:
        return sorted(b for b, mask in self.pending.items() if mask != self.tried.get(b, 0))

    def _step(self, able: list[int]) -> bool:
        """Run one block; False when the warp gives way instead."""
        above = [block for block in able if block >= self.start]
        if not above:
            self.start = self.turns = 0
            return False
        self._try(above[0])
        return True

    def _try(self, chosen: int, part: int = FULL) -> None:
        """Run lanes of a block: those in `part`, all when there are none."""
        mask = self.pending.pop(chosen)
        run = mask & part or mask
        if chosen in self.syncs:
            run = self._together(self.blocks[chosen], mask)
            self.tried[chosen] = 0 if run else mask
        if mask & ~run:
            self.pending[chosen] = mask & ~run
        if run:
            self._run_block(self.blocks[chosen], run)

    def _together(self, block: Block, here: int) -> int:
        """The lanes at a `.sync` whose named lanes are all at it."""
        operand = block.instructions[0].operands["m"]
        assert operand is not None
        named = self.read(operand, SCALARS["b32"]).tolist()
        missing = self.live & ~here
        return sum(1 << n for n, mask in enumerate(named) if here >> n & 1 and not mask & missing)

    def _nothing(self) -> None:
        for mask in self.held.values():
            self.arrived |= mask
        if self.arrived:
            self.turns = 0
        elif self.pending:
            lowest = min(self.pending)
            mask = self.pending[lowest]
            made = self.blocks[lowest].instructions[0]
            raise Fault(abi.Code.SYNC, made, self.index, (mask & -mask).bit_length() - 1)

    def release(self) -> None:
        """The barrier is complete: lanes that wait may go on, beside those that wait already."""
        self.arrived = 0
        for block, mask in self.held.items():
            self.pending[block] = self.pending.get(block, 0) | mask
        self.held = {}

    def _go(self, source: Block, block: int, mask: int) -> None:
        super()._go(source, block, mask)
        if mask and block == EXIT:
            self.tried = {}
        elif mask and block <= source.index:
            self._turned(source)

    def _turned(self, source: Block) -> None:
        self.turns += 1
        if self.turns >= schedule.TURNS:
            self.turns, self.start = 0, source.index + 1


class Lots(Turns):
    """`adversarial`: a block and lanes of it by lot."""

    def __init__(self, block: BlockState, index: int) -> None:
        super().__init__(block, index)
        self.lot = schedule.seeded(self.grid.seed, block.number, index)

    def _draw(self) -> int:
        self.lot = schedule.drawn(self.lot)
        return self.lot

    def _step(self, able: list[int]) -> bool:
        self.turns += 1
        if self.turns > schedule.TURNS:
            self.turns = 0
            return False
        chosen = able[self._draw() % len(able)]
        self._try(chosen, self._draw())
        return True

    def _turned(self, source: Block) -> None:
        """Lots need no turns."""


class Stack(Turns):
    """`ipdom`: lanes that part meet where all of their paths do; entries of block, join, mask."""

    def __init__(self, block: BlockState, index: int) -> None:
        super().__init__(block, index)
        self.joins = postdominators(self.grid.graph)
        self.stack = [(0, len(self.blocks), self.live)]
        self.seen = self.patience = 0
        self.gave_way = False

    def run(self) -> None:
        """Until the stack is empty, a barrier, or a turn of others."""
        self.gave_way = False
        with np.errstate(all="ignore"):
            while self.stack and not self.gave_way:
                chosen, join, mask = self.stack[-1]
                mask &= self.live
                if not mask or chosen == join:
                    self.stack.pop()
                    continue
                self.pending = {}
                self._run_block(self.blocks[chosen], mask)
                self._restack(self.blocks[chosen])
                if self.turns >= schedule.TURNS:
                    self.turns, self.gave_way = 0, True

    def _restack(self, block: Block) -> None:
        if self.held:
            self.stack[-1] = (block.follow, *self.stack[-1][1:])
            self.held, self.arrived, self.turns = {}, self.live, 0
            self.gave_way = True
            return
        _, join, mask = self.stack[-1]
        ways = list(self.pending.items())
        if len(ways) == 1:
            self.stack[-1] = (ways[0][0], join, mask)
        elif ways:
            meet = self.joins[block.index]
            if join == meet:
                self.stack.pop()
            else:
                self.stack[-1] = (meet, join, mask)
            self.stack += [(to, meet, part) for to, part in reversed(ways) if to != meet]

    def release(self) -> None:
        """The barrier is complete."""
        self.arrived = 0

    def _turned(self, source: Block) -> None:
        self.turns += 1
        if source.index in self.spinning:
            same = self.mask == self.seen and self.live & ~self.mask
            self.patience = self.patience + 1 if same else 0
            self.seen = self.mask
            if self.patience >= schedule.PATIENCE:
                lane = (self.mask & -self.mask).bit_length() - 1
                raise Fault(abi.Code.DEADLOCK, source.last, self.index, lane)


WARPS: dict[str, type[WarpState]] = {
    "lowest": WarpState,
    "its": Turns,
    "adversarial": Lots,
    "ipdom": Stack,
}
"""What runs a warp in each order."""
