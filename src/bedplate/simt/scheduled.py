"""The warp function of a schedule in which lanes may wait anywhere; see `schedule`.

Every block ends at one place that chooses the next one, so the order is a matter of that
place alone. Registers are vectors and every write keeps to its lanes; this is for kernels
whose lanes wait for each other, and for looking for those that should, not for speed.

The function also returns when its lanes have had their turns, so that other warps run.
`interpreter.scheduled` is the same in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from bedplate.simt import abi, lanes, schedule
from bedplate.simt.divergence import postdominators
from bedplate.simt.graph import EXIT, Block, is_sync
from bedplate.simt.lanes import I8, I32, I64
from bedplate.simt.liveness import members
from bedplate.simt.scalar import SCALARS
from bedplate.simt.warp import Plan, WarpBuilder, WarpFunction

YIELDED, RELEASED = 1, 2
"""Labels: the warp gave way, or waits at a barrier; 0 is the start."""
_NONE = 0xFFFFFFFF


class ScheduledBuilder(WarpBuilder):
    """Makes the warp function of a plan whose order is not the lowest block first."""

    def __init__(self, module: ir.Module, plan: Plan) -> None:
        super().__init__(module, plan)
        zeroed = self.emitter._zeroed
        blocks = self.graph.blocks
        self.order = plan.order
        self.held = {resume: zeroed(I32) for resume in self.resumes}
        self.syncs = [b.index for b in blocks if b.instructions and is_sync(b.instructions[0])]
        self.tried = {index: zeroed(I32) for index in self.syncs}
        names = ("turns", "start", "lot", "part", "depth", "patience", "seen")
        self.counters = {name: zeroed(I32) for name in names}
        self.spinning = schedule.spinning(self.graph)
        self.joins = postdominators(self.graph)
        self.pick = self.emitter.function.append_basic_block("pick")

    def build(self) -> WarpFunction:
        """Make all of it."""
        start = self._prologue()
        start.store(self.emitter.field(self.emitter.warp, abi.Warp, "live"), self.live)
        if self.order == "ipdom":
            self.stack = self.state.place(("stack", 0), 4 * 3 * schedule.DEEPEST)
        for block in self.graph.blocks:
            self.emitter.builder = ir.IRBuilder(self.heads[block.index])
            self._head(block)
        self.emitter.builder = ir.IRBuilder(self.pick)
        {"its": self._pick_lowest, "adversarial": self._pick_lot, "ipdom": self._pick_top}[
            self.order
        ]()
        self.emitter.builder = start
        self._enter()
        return WarpFunction(self.emitter.function, -(-self.state.size // 64) * 64, True)

    # Small words.

    def _get(self, name: str) -> Any:
        return self.builder.load(self.counters[name])

    def _put(self, name: str, value: Any) -> None:
        self.builder.store(
            value if not isinstance(value, int) else _word(value), self.counters[name]
        )

    def _when(self, condition: Any, body: Callable[[], None]) -> None:
        yes, after = self._fork(condition)
        self.emitter.builder = ir.IRBuilder(yes)
        body()
        if not self.builder.block.is_terminated:
            self.builder.branch(after)
        self.emitter.builder = ir.IRBuilder(after)

    def _is(self, how: str, one: Any, other: Any) -> Any:
        other = _word(other) if isinstance(other, int) else other
        return self.builder.icmp_unsigned(how, one, other)

    # Entry and waiting.

    def _enter(self) -> None:
        builder = self.builder
        label = self.emitter.field(self.emitter.warp, abi.Warp, "label")
        fresh, back = self._fork(self._is("==", label, 0))
        builder = self.emitter.builder = ir.IRBuilder(fresh)
        live = builder.load(self.live)
        if self.order == "ipdom":
            self._push(_word(0), _word(len(self.graph.blocks)), live)
        else:
            builder.store(live, self.pending[0])
        if self.order == "adversarial":
            self._put("lot", self._seed())
        builder.branch(self.pick)
        builder = self.emitter.builder = ir.IRBuilder(back)
        self._keep(self._needed(), restore=True)
        self._keep_all(restore=True)
        self._when(self._is("==", label, RELEASED), self._release)
        self.builder.branch(self.pick)

    def _seed(self) -> Any:
        emitter, builder = self.emitter, self.builder
        seed = builder.trunc(emitter.field(emitter.launch, abi.Launch, "seed"), I32)
        block = builder.trunc(emitter.field(emitter.block, abi.Block, "index"), I32)
        warp = emitter.field(emitter.warp, abi.Warp, "index")
        a, b, c, d = (_word(value) for value in schedule.SEEDS)
        mixed = builder.add(builder.add(builder.mul(block, b), builder.mul(warp, c)), d)
        made = builder.xor(builder.mul(seed, a), mixed)
        return builder.select(self._is("==", made, 0), _word(1), made)

    def _draw(self) -> Any:
        builder, state = self.builder, self._get("lot")
        state = builder.xor(state, builder.shl(state, _word(13)))
        state = builder.xor(state, builder.lshr(state, _word(17)))
        state = builder.xor(state, builder.shl(state, _word(5)))
        self._put("lot", state)
        return state

    def _needed(self) -> list[int]:
        needed = 0
        for live in self.plan.liveness.at_start:
            needed |= live
        return members(needed)

    def _keep_all(self, *, restore: bool) -> None:
        for kind, slots in (
            ("mask", self.pending),
            ("held", self.held),
            ("tried", self.tried),
            ("counter", dict(enumerate(self.counters.values()))),
        ):
            for index, where in slots.items():
                self._move((kind, index), where, restore=restore)

    def _release(self) -> None:
        builder = self.builder
        for resume, where in self.held.items():
            waiting = builder.or_(builder.load(self.pending[resume]), builder.load(where))
            builder.store(waiting, self.pending[resume])
            builder.store(_word(0), where)

    def _give_way(self, label: int) -> None:
        self._put("turns", 0)
        self._keep(self._needed(), restore=False)
        self._keep_all(restore=False)
        self._set("live", self.builder.load(self.live))
        self._set("budget", self.builder.load(self.budget))
        self.builder.ret(_word(label))

    def _nothing(self) -> None:
        """No lane can go on: the warp is done, waits at barriers, or lacks named lanes."""
        builder = self.builder
        held: Any = _word(0)
        for where in self.held.values():
            held = builder.or_(held, builder.load(where))
        if self.held:

            def arrive() -> None:
                self._set("arrived", held)
                self._give_way(RELEASED)

            self._when(self._is("!=", held, 0), arrive)
        for index in self.syncs:
            waiting = self.builder.load(self.pending[index])
            made = self.graph.blocks[index].instructions[0]

            def fault(waiting: Any = waiting, made: Any = made) -> None:
                self.emitter.fault(abi.Code.SYNC, made, waiting, None)

            self._when(self._is("!=", waiting, 0), fault)
        self.builder.ret(ir.Constant(I32, abi.DONE))

    # Choosing.

    def _able(self, index: int) -> Any:
        """Whether a block has lanes that may run it."""
        waiting = self.builder.load(self.pending[index])
        some = self._is("!=", waiting, 0)
        if index in self.tried:
            again = self._is("!=", waiting, self.builder.load(self.tried[index]))
            some = self.builder.and_(some, again)
        return some

    def _to(self, chosen: Any) -> None:
        switch = self.builder.switch(chosen, self.heads[0])
        for block in self.graph.blocks[1:]:
            switch.add_case(_word(block.index), self.heads[block.index])

    def _pick_lowest(self) -> None:
        builder, start = self.builder, self._get("start")
        above: Any = _word(_NONE)
        lowest: Any = _word(_NONE)
        for block in reversed(self.graph.blocks):
            able, number = self._able(block.index), _word(block.index)
            lowest = builder.select(able, number, lowest)
            high = builder.and_(able, self._is(">=", number, start))
            above = builder.select(high, number, above)
        self._when(self._is("==", lowest, _NONE), self._nothing)
        there, wrapped = self._fork(self._is("!=", above, _NONE))
        self.emitter.builder = ir.IRBuilder(there)
        self._to(above)
        self.emitter.builder = ir.IRBuilder(wrapped)
        # All have had their turn; `start` was not 0, else `above` were `lowest`.
        self._put("start", 0)
        self._give_way(YIELDED)

    def _pick_lot(self) -> None:
        builder = self.builder
        turns = builder.add(self._get("turns"), _word(1))
        self._put("turns", turns)
        ables = [builder.zext(self._able(block.index), I32) for block in self.graph.blocks]
        count: Any = _word(0)
        for able in ables:
            count = builder.add(count, able)
        self._when(self._is("==", count, 0), self._nothing)
        self._when(self._is(">", turns, schedule.TURNS), lambda: self._give_way(YIELDED))
        builder = self.builder
        lot = builder.urem(self._draw(), count)
        seen: Any = _word(0)
        chosen: Any = _word(0)
        for block, able in zip(self.graph.blocks, ables, strict=True):
            mine = builder.and_(self._is("!=", able, 0), self._is("==", seen, lot))
            chosen = builder.select(mine, _word(block.index), chosen)
            seen = builder.add(seen, able)
        self._put("part", self._draw())
        self._to(chosen)

    # Blocks.

    def _head(self, block: Block) -> None:
        emitter, builder = self.emitter, self.builder
        emitter.frozen = self.divergence.frozen[block.index]
        if self.order == "ipdom":
            mask = builder.and_(self._top(2), builder.load(self.live))
        else:
            mask = builder.load(self.pending[block.index])
            if block.index in self.tried:
                mask = self._together(block, mask)
            elif self.order == "adversarial":
                some = builder.and_(mask, self._get("part"))
                mask = builder.select(self._is("==", some, 0), mask, some)
            left = self.builder.load(self.pending[block.index])
            left = self.builder.and_(left, self.builder.not_(mask))
            self.builder.store(left, self.pending[block.index])
        emitter.block_mask = mask
        self._spend(block, block.index)
        for tool in self.plan.tools:
            tool.entered(emitter, block)
        for made in block.instructions:
            emitter.emit(made)
        self._end(block, emitter.block_mask)

    def _together(self, block: Block, here: Any) -> Any:
        """The lanes at a `.sync` whose named lanes are all at it; else choose anew."""
        builder, operand = self.builder, block.instructions[0].operands["m"]
        assert operand is not None
        named = self.emitter.vector(operand, SCALARS["b32"])
        missing = builder.and_(builder.load(self.live), builder.not_(here))
        absent = builder.and_(named, lanes.splat(builder, missing))
        lacking = lanes.mask_bits(
            builder, builder.icmp_unsigned("!=", absent, lanes.like(named, 0))
        )
        able = builder.and_(here, builder.not_(lacking))

        def wait() -> None:
            self.builder.store(here, self.tried[block.index])
            self.builder.branch(self.pick)

        self._when(self._is("==", able, 0), wait)
        self.builder.store(_word(0), self.tried[block.index])
        return able

    def _end(self, block: Block, mask: Any) -> None:
        emitter = self.emitter
        if block.ending == "trap":
            emitter.fault(abi.Code.TRAP, block.last, mask, None)
        elif block.ending == "barrier":
            self._at_barrier(block, mask)
        elif block.guard is None:
            self._send(block, [(block.follow, mask)])
        else:
            assert block.target is not None
            guard = emitter.guard_value(block.guard.register, block.guard.negated)
            taken = self.builder.and_(mask, guard)
            for tool in self.plan.tools:
                if block.last is not None:
                    tool.branched(emitter, block.last, taken)
            stays = self.builder.and_(mask, self.builder.not_(guard))
            self._send(block, [(block.target, taken), (block.follow, stays)])

    def _at_barrier(self, block: Block, mask: Any) -> None:
        emitter, made = self.emitter, block.last
        assert made is not None
        number = self._first(made, "a", mask)
        count: Any = _word(0) if made.operands.get("b") is None else self._first(made, "b", mask)
        for tool in self.plan.tools:
            tool.waited(emitter, made, number, count)
        self._set("barrier", number)
        self._set("barrier_threads", count)
        self._vote(made, mask)
        if self.order == "ipdom":
            self._set_top(0, _word(block.follow))
            self._set("arrived", self.builder.load(self.live))
            self._give_way(YIELDED)
            return
        where = self.held[block.follow]
        self.builder.store(self.builder.or_(self.builder.load(where), mask), where)
        self.builder.branch(self.pick)

    def _send(self, block: Block, ways: list[tuple[int, Any]]) -> None:
        """Lanes go on at other blocks, or end; then the next block is chosen."""
        for to, mask in ways:
            if to == EXIT:
                self._leave(mask)
                for where in self.tried.values():
                    self.builder.store(_word(0), where)
            elif self.order != "ipdom":
                self._wait_at(to, mask)
        if self.order == "ipdom":
            self._restack(block, ways)
        back = [mask for to, mask in ways if to != EXIT and to <= block.index]
        if self.order != "adversarial":
            for mask in back:
                self._when(self._is("!=", mask, 0), lambda: self._turned(block))
        if back and self.order == "ipdom":
            over = self._is(">=", self._get("turns"), schedule.TURNS)
            self._when(over, lambda: self._give_way(YIELDED))
        self.builder.branch(self.pick)

    def _turned(self, block: Block) -> None:
        """A way back was taken: after enough of them others get a turn."""
        turns = self.builder.add(self._get("turns"), _word(1))
        self._put("turns", turns)

        def rotate() -> None:
            self._put("turns", 0)
            self._put("start", block.index + 1)

        if self.order == "its":
            self._when(self._is(">=", turns, schedule.TURNS), rotate)
        elif block.index in self.spinning:
            self._count_patience(block)

    # The stack of ipdom: entries of block, join and mask.

    def _entry(self, index: Any, part: int) -> Any:
        builder = self.builder
        at = builder.add(builder.mul(index, _word(3)), _word(part))
        at = builder.add(
            builder.mul(builder.zext(at, I64), ir.Constant(I64, 4)), ir.Constant(I64, self.stack)
        )
        return builder.gep(self.emitter.warp, [at], source_etype=I8)

    def _last(self) -> Any:
        return self.builder.sub(self._get("depth"), _word(1))

    def _top(self, part: int) -> Any:
        return self.builder.load(self._entry(self._last(), part), typ=I32)

    def _set_top(self, part: int, value: Any) -> None:
        self.builder.store(value, self._entry(self._last(), part))

    def _push(self, block: Any, join: Any, mask: Any) -> None:
        depth = self._get("depth")
        for part, value in enumerate((block, join, mask)):
            self.builder.store(value, self._entry(depth, part))
        self._put("depth", self.builder.add(depth, _word(1)))

    def _restack(self, block: Block, ways: list[tuple[int, Any]]) -> None:
        staying = [(to, mask) for to, mask in ways if to != EXIT]
        if not staying:
            return
        if len(staying) == 1:
            self._set_top(0, _word(staying[0][0]))
            return
        (target, taken), (follow, stays) = staying
        both = self.builder.and_(self._is("!=", taken, 0), self._is("!=", stays, 0))
        split, one = self._fork(both)
        after = self.emitter.function.append_basic_block("stacked")
        builder = self.emitter.builder = ir.IRBuilder(one)
        to = builder.select(self._is("!=", taken, 0), _word(target), _word(follow))
        self._set_top(0, to)
        self.builder.branch(after)
        self.emitter.builder = ir.IRBuilder(split)
        join = self.joins[block.index]
        same = self._is("==", self._top(1), join)
        # An entry that would only be left again is not kept: loops would pile them up.
        less = self.builder.sub(self._get("depth"), self.builder.zext(same, I32))
        self._when(self.builder.not_(same), lambda: self._set_top(0, _word(join)))
        self._put("depth", less)
        for to_block, mask in ((follow, stays), (target, taken)):
            if to_block != join:
                self._push(_word(to_block), _word(join), mask)
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
        count = builder.select(same, builder.add(self._get("patience"), _word(1)), _word(0))
        self._put("patience", count)
        self._put("seen", mask)

        def deadlock() -> None:
            self.emitter.fault(abi.Code.DEADLOCK, block.last, mask, None)

        self._when(self._is(">=", count, schedule.PATIENCE), deadlock)


def _word(value: int) -> ir.Constant:
    return ir.Constant(I32, value)
