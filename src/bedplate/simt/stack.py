"""The warp function of `ipdom`: lanes that part meet where all of their ways do.

A stack of entries of block, join and mask is kept behind the warp; the top runs until it is
at its join. Lanes below it cannot run, so a loop that waits for them is a deadlock, which
is counted in turns of the same lanes.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from bedplate.simt import abi, schedule
from bedplate.simt.divergence import postdominators
from bedplate.simt.graph import EXIT, Block
from bedplate.simt.lanes import I8, I32, I64
from bedplate.simt.plan import Plan
from bedplate.simt.scheduled import YIELDED, ScheduledBuilder, word


class StackBuilder(ScheduledBuilder):
    """Makes the warp function of a plan whose order is `ipdom`."""

    def __init__(self, module: ir.Module, plan: Plan) -> None:
        super().__init__(module, plan)
        self.spinning = schedule.spinning(self.graph)
        self.joins = postdominators(self.graph)

    def _reserve(self) -> None:
        self.stack = self.state.place(("stack", 0), 4 * 3 * schedule.DEEPEST)

    def _begin(self, live: Any) -> None:
        self._push(word(0), word(len(self.graph.blocks)), live)

    def _pick(self) -> None:
        self._pick_top()

    def _lanes(self, block: Block) -> Any:
        return self.builder.and_(self._top(2), self.builder.load(self.live))

    def _hold(self, block: Block, mask: Any) -> None:
        self._set_top(0, word(block.follow))
        self._set("arrived", self.builder.load(self.live))
        self._give_way(YIELDED)

    def _wait_at(self, block: int, mask: Any) -> None:
        """Who waits is on the stack."""

    def _settle(self, block: Block, ways: list[tuple[int, Any]]) -> None:
        self._restack(block, ways)

    def _back(self, block: Block, masks: list[Any]) -> None:
        super()._back(block, masks)
        if masks:
            over = self._is(">=", self._get("turns"), schedule.TURNS)
            self._when(over, lambda: self._give_way(YIELDED))

    def _turned(self, block: Block) -> None:
        self._put("turns", self.builder.add(self._get("turns"), word(1)))
        if block.index in self.spinning:
            self._count_patience(block)

    # Entries.

    def _entry(self, index: Any, part: int) -> Any:
        builder = self.builder
        at = builder.add(builder.mul(index, word(3)), word(part))
        at = builder.add(
            builder.mul(builder.zext(at, I64), ir.Constant(I64, 4)), ir.Constant(I64, self.stack)
        )
        return builder.gep(self.emitter.warp, [at], source_etype=I8)

    def _last(self) -> Any:
        return self.builder.sub(self._get("depth"), word(1))

    def _top(self, part: int) -> Any:
        return self.builder.load(self._entry(self._last(), part), typ=I32)

    def _set_top(self, part: int, value: Any) -> None:
        self.builder.store(value, self._entry(self._last(), part))

    def _push(self, block: Any, join: Any, mask: Any) -> None:
        depth = self._get("depth")
        for part, value in enumerate((block, join, mask)):
            self.builder.store(value, self._entry(depth, part))
        self._put("depth", self.builder.add(depth, word(1)))

    def _restack(self, block: Block, ways: list[tuple[int, Any]]) -> None:
        staying = [(to, mask) for to, mask in ways if to != EXIT]
        if not staying:
            return
        if len(staying) == 1:
            self._set_top(0, word(staying[0][0]))
            return
        (target, taken), (follow, stays) = staying
        both = self.builder.and_(self._is("!=", taken, 0), self._is("!=", stays, 0))
        split, one = self._fork(both)
        after = self.emitter.function.append_basic_block("stacked")
        builder = self.emitter.builder = ir.IRBuilder(one)
        to = builder.select(self._is("!=", taken, 0), word(target), word(follow))
        self._set_top(0, to)
        self.builder.branch(after)
        self.emitter.builder = ir.IRBuilder(split)
        join = self.joins[block.index]
        same = self._is("==", self._top(1), join)
        # An entry that would only be left again is not kept: loops would pile them up.
        less = self.builder.sub(self._get("depth"), self.builder.zext(same, I32))
        self._when(self.builder.not_(same), lambda: self._set_top(0, word(join)))
        self._put("depth", less)
        for to_block, mask in ((follow, stays), (target, taken)):
            if to_block != join:
                self._push(word(to_block), word(join), mask)
        self.builder.branch(after)
        self.emitter.builder = ir.IRBuilder(after)

    def _pick_top(self) -> None:
        empty = self._is("==", self._get("depth"), 0)
        self._when(empty, lambda: self.builder.ret(ir.Constant(I32, abi.DONE)) and None)
        mask = self.builder.and_(self._top(2), self.builder.load(self.live))
        block = self._top(0)
        met = self.builder.or_(self._is("==", mask, 0), self._is("==", block, self._top(1)))

        def pop() -> None:
            self._put("depth", self._last())
            self.builder.branch(self.pick)

        self._when(met, pop)
        self._to(block)

    def _count_patience(self, block: Block) -> None:
        """The same lanes went round again; end when the others wait in vain."""
        builder, mask = self.builder, self.emitter.block_mask
        waiting = builder.and_(builder.load(self.live), builder.not_(mask))
        same = builder.and_(self._is("==", mask, self._get("seen")), self._is("!=", waiting, 0))
        count = builder.select(same, builder.add(self._get("patience"), word(1)), word(0))
        self._put("patience", count)
        self._put("seen", mask)

        def deadlock() -> None:
            self.emitter.fault(abi.Code.DEADLOCK, block.last, mask, None)

        self._when(self._is(">=", count, schedule.PATIENCE), deadlock)
