"""The warp function of a schedule in which lanes may wait anywhere; see `schedule`.

Every block ends at one place that chooses the next one, so the order is a matter of that
place alone. Registers are vectors and every write keeps to its lanes; this is for kernels
whose lanes wait for each other, and for looking for those that should, not for speed.

The function also returns when its lanes have had their turns, so that other warps run.
`interpreter.scheduled` is the same in Python; `stack` is `ipdom`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from bedplate.simt import abi, lanes, schedule
from bedplate.simt.graph import EXIT, Block, is_sync
from bedplate.simt.lanes import I32
from bedplate.simt.liveness import members
from bedplate.simt.plan import Plan, WarpFunction
from bedplate.simt.scalar import SCALARS
from bedplate.simt.warp import WarpBuilder

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
        self.pick = self.emitter.function.append_basic_block("pick")

    def build(self) -> WarpFunction:
        """Make all of it."""
        start = self._prologue()
        start.store(self.emitter.field(self.emitter.warp, abi.Warp, "live"), self.live)
        self._reserve()
        for block in self.graph.blocks:
            self.emitter.builder = ir.IRBuilder(self.heads[block.index])
            self._head(block)
        self.emitter.builder = ir.IRBuilder(self.pick)
        self._pick()
        self.emitter.builder = start
        self._enter()
        return WarpFunction(self.emitter.function, -(-self.state.size // 64) * 64, True)

    # Small words.

    def _get(self, name: str) -> Any:
        return self.builder.load(self.counters[name])

    def _put(self, name: str, value: Any) -> None:
        self.builder.store(
            value if not isinstance(value, int) else word(value), self.counters[name]
        )

    def _when(self, condition: Any, body: Callable[[], None]) -> None:
        yes, after = self._fork(condition)
        self.emitter.builder = ir.IRBuilder(yes)
        body()
        if not self.builder.block.is_terminated:
            self.builder.branch(after)
        self.emitter.builder = ir.IRBuilder(after)

    def _is(self, how: str, one: Any, other: Any) -> Any:
        other = word(other) if isinstance(other, int) else other
        return self.builder.icmp_unsigned(how, one, other)

    # Entry and waiting.

    def _enter(self) -> None:
        builder = self.builder
        label = self.emitter.field(self.emitter.warp, abi.Warp, "label")
        fresh, back = self._fork(self._is("==", label, 0))
        builder = self.emitter.builder = ir.IRBuilder(fresh)
        live = builder.load(self.live)
        self._begin(live)
        if self.order == "adversarial":
            self._put("lot", self._seed())
        self.builder.branch(self.pick)
        self.emitter.builder = ir.IRBuilder(back)
        self._keep(self._needed(), restore=True)
        self._keep_all(restore=True)
        self._when(self._is("==", label, RELEASED), self._release)
        self.builder.branch(self.pick)

    def _seed(self) -> Any:
        emitter, builder = self.emitter, self.builder
        seed = builder.trunc(emitter.field(emitter.launch, abi.Launch, "seed"), I32)
        block = builder.trunc(emitter.field(emitter.block, abi.Block, "index"), I32)
        warp = emitter.field(emitter.warp, abi.Warp, "index")
        a, b, c, d = (word(value) for value in schedule.SEEDS)
        mixed = builder.add(builder.add(builder.mul(block, b), builder.mul(warp, c)), d)
        made = builder.xor(builder.mul(seed, a), mixed)
        return builder.select(self._is("==", made, 0), word(1), made)

    def _draw(self) -> Any:
        builder, state = self.builder, self._get("lot")
        state = builder.xor(state, builder.shl(state, word(13)))
        state = builder.xor(state, builder.lshr(state, word(17)))
        state = builder.xor(state, builder.shl(state, word(5)))
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
            builder.store(word(0), where)

    def _give_way(self, label: int) -> None:
        self._put("turns", 0)
        self._keep(self._needed(), restore=False)
        self._keep_all(restore=False)
        self._set("live", self.builder.load(self.live))
        self._set("budget", self.builder.load(self.budget))
        self.builder.ret(word(label))

    def _nothing(self) -> None:
        """No lane can go on: the warp is done, waits at barriers, or lacks named lanes."""
        builder = self.builder
        held: Any = word(0)
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

    # What `stack` does otherwise.

    def _reserve(self) -> None:
        """Take room behind the warp for what the order keeps."""

    def _begin(self, live: Any) -> None:
        """All lanes are at the first block."""
        self.builder.store(live, self.pending[0])

    def _pick(self) -> None:
        """Choose a block and go there."""
        if self.order == "adversarial":
            self._pick_lot()
        else:
            self._pick_lowest()

    def _lanes(self, block: Block) -> Any:
        """The lanes that run a block now; the others stay at it."""
        builder = self.builder
        mask = builder.load(self.pending[block.index])
        if block.index in self.tried:
            mask = self._together(block, mask)
        elif self.order == "adversarial":
            some = builder.and_(mask, self._get("part"))
            mask = builder.select(self._is("==", some, 0), mask, some)
        left = self.builder.load(self.pending[block.index])
        left = self.builder.and_(left, self.builder.not_(mask))
        self.builder.store(left, self.pending[block.index])
        return mask

    def _hold(self, block: Block, mask: Any) -> None:
        """Lanes wait at a barrier."""
        where = self.held[block.follow]
        self.builder.store(self.builder.or_(self.builder.load(where), mask), where)
        self.builder.branch(self.pick)

    def _settle(self, block: Block, ways: list[tuple[int, Any]]) -> None:
        """All lanes of a block have gone their ways."""

    def _back(self, block: Block, masks: list[Any]) -> None:
        """Lanes of `masks` take ways back."""
        if self.order != "adversarial":
            for mask in masks:
                self._when(self._is("!=", mask, 0), lambda: self._turned(block))

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
            switch.add_case(word(block.index), self.heads[block.index])

    def _pick_lowest(self) -> None:
        builder, start = self.builder, self._get("start")
        above: Any = word(_NONE)
        lowest: Any = word(_NONE)
        for block in reversed(self.graph.blocks):
            able, number = self._able(block.index), word(block.index)
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
        turns = builder.add(self._get("turns"), word(1))
        self._put("turns", turns)
        ables = [builder.zext(self._able(block.index), I32) for block in self.graph.blocks]
        count: Any = word(0)
        for able in ables:
            count = builder.add(count, able)
        self._when(self._is("==", count, 0), self._nothing)
        self._when(self._is(">", turns, schedule.TURNS), lambda: self._give_way(YIELDED))
        builder = self.builder
        lot = builder.urem(self._draw(), count)
        seen: Any = word(0)
        chosen: Any = word(0)
        for block, able in zip(self.graph.blocks, ables, strict=True):
            mine = builder.and_(self._is("!=", able, 0), self._is("==", seen, lot))
            chosen = builder.select(mine, word(block.index), chosen)
            seen = builder.add(seen, able)
        self._put("part", self._draw())
        self._to(chosen)

    # Blocks.

    def _head(self, block: Block) -> None:
        emitter = self.emitter
        emitter.frozen = self.divergence.frozen[block.index]
        emitter.block_mask = self._lanes(block)
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
        self.builder.store(word(0), self.tried[block.index])
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
        count: Any = word(0) if made.operands.get("b") is None else self._first(made, "b", mask)
        for tool in self.plan.tools:
            tool.waited(emitter, made, number, count)
        self._set("barrier", number)
        self._set("barrier_threads", count)
        self._vote(made, mask)
        self._hold(block, mask)

    def _send(self, block: Block, ways: list[tuple[int, Any]]) -> None:
        """Lanes go on at other blocks, or end; then the next block is chosen."""
        for to, mask in ways:
            if to == EXIT:
                self._leave(mask)
                for where in self.tried.values():
                    self.builder.store(word(0), where)
            else:
                self._wait_at(to, mask)
        self._settle(block, ways)
        self._back(block, [mask for to, mask in ways if to != EXIT and to <= block.index])
        self.builder.branch(self.pick)

    def _turned(self, block: Block) -> None:
        """A way back was taken: after enough of them others get a turn."""
        turns = self.builder.add(self._get("turns"), word(1))
        self._put("turns", turns)

        def rotate() -> None:
            self._put("turns", 0)
            self._put("start", block.index + 1)

        self._when(self._is(">=", turns, schedule.TURNS), rotate)


def word(value: int) -> ir.Constant:
    """A number as the code has it."""
    return ir.Constant(I32, value)
