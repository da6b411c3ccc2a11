"""The warp function: the control flow of a kernel for 32 lanes at once.

Where lanes agree a branch is a branch. Where they may not, each block of the region keeps
a mask of the lanes that wait at it, and the lowest block with lanes runs next (`graph`);
which blocks those can be is known when compiling (`divergence`), so the choice is a short
chain of tests, and none at all outside of regions. A branch that happens to be taken by
all lanes or by none takes no detour.

At a barrier the function returns; registers that live on are kept behind the `Warp`
structure, and it is called again with the label of the block behind the barrier.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from llvmlite import ir

import bedplate.simt.lowering.classes  # noqa: F401 - registers the lowerings
from bedplate.simt import abi, lanes, specials
from bedplate.simt.emitter import Emitter
from bedplate.simt.graph import EXIT, Block
from bedplate.simt.lanes import I1, I8, I32, I64, PTR
from bedplate.simt.liveness import members
from bedplate.simt.module import Instruction
from bedplate.simt.plan import Plan, WarpFunction
from bedplate.simt.resolve import first_lane
from bedplate.simt.scalar import FULL, SCALARS

RESULT = ir.FunctionType(I32, [PTR, PTR, PTR])


@dataclass
class _State:
    """Where registers and masks are kept while a warp waits."""

    offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    size: int = ctypes.sizeof(abi.Warp)

    def place(self, key: tuple[str, int], size: int) -> int:
        if key not in self.offsets:
            self.size = -(-self.size // min(size, 64)) * min(size, 64)
            self.offsets[key] = self.size
            self.size += size
        return self.offsets[key]


class WarpBuilder:
    """Makes the warp function of a plan."""

    def __init__(self, module: ir.Module, plan: Plan) -> None:
        self.plan, self.graph = plan, plan.graph
        self.divergence = plan.uniformity.divergence
        function = ir.Function(module, RESULT, "warp")
        function.linkage = "internal"
        self.emitter = Emitter(plan.graph, plan.uniformity, function, plan.tools)
        self.emitter.shared_offsets = dict(plan.shared_offsets)
        self.emitter.local_offsets = dict(plan.local_offsets)
        self.emitter.local_bytes = plan.local_bytes
        self.emitter.sited = plan.sited
        self.emitter.symbols = dict(plan.symbols)
        self.emitter.parameter_offsets = dict(plan.parameter_offsets)
        self.heads = [
            function.append_basic_block(f"block{block.index}") for block in self.graph.blocks
        ]
        self.live = self.emitter.live = self.emitter._zeroed(I32)
        self.budget = self.emitter._zeroed(I64)
        waits = self.divergence.inside
        for waiting in self.divergence.waiting:
            waits |= waiting
        self.pending = {index: self.emitter._zeroed(I32) for index in members(waits)}
        self.resumes = self.graph.resumes
        # Lanes at a barrier wait in `pending`, and are `ready` when it has let them go.
        self.ready = {r: self.emitter._zeroed(I32) for r in self.resumes if r in self.pending}
        self.state = _State()
        self.idle: Any = None

    @property
    def builder(self) -> ir.IRBuilder:
        """Where code is added."""
        return self.emitter.builder

    def build(self) -> WarpFunction:
        """Make all of it."""
        emitter = self.emitter
        if any(self._inside(b) and b.ending == "barrier" for b in self.graph.blocks):
            self.idle = emitter.function.append_basic_block("idle")
        start = self._prologue()
        for block in self.graph.blocks:
            emitter.builder = ir.IRBuilder(self.heads[block.index])
            self._block(block)
        if self.idle is not None:
            self._idle()
        self._dispatch(start)
        return WarpFunction(emitter.function, -(-self.state.size // 64) * 64, bool(self.resumes))

    # Entry.

    def _prologue(self) -> ir.IRBuilder:
        emitter = self.emitter
        builder = emitter.builder = emitter.entry
        live: Any = ir.Constant(I32, FULL)
        if not self.plan.full or self.resumes:
            live = emitter.field(emitter.warp, abi.Warp, "live")
        if self.plan.full and not self.resumes:
            live = ir.Constant(I32, FULL)
        builder.store(live, self.live)
        builder.store(emitter.field(emitter.warp, abi.Warp, "budget"), self.budget)
        specials.define(emitter, self.plan.uniformity.layout)
        return builder

    def _dispatch(self, builder: ir.IRBuilder) -> None:
        """Go to the block that the warp's label names, with its registers back."""
        emitter = self.emitter
        emitter.builder = builder
        if not self.resumes:
            builder.branch(self.heads[0])
            return
        label = emitter.field(emitter.warp, abi.Warp, "label")
        switch = builder.switch(label, self.heads[0])
        for resume in self.resumes:
            back = emitter.function.append_basic_block(f"resume{resume}")
            switch.add_case(ir.Constant(I32, resume), back)
            emitter.builder = ir.IRBuilder(back)
            self._keep(self._kept(resume), restore=True)
            if self._from_inside(resume):
                self._keep_masks(restore=True)
                for index, where in self.ready.items():
                    builder = emitter.builder
                    builder.store(builder.load(self.pending[index]), where)
                    builder.store(ir.Constant(I32, 0), self.pending[index])
            emitter.builder.branch(self.heads[resume])

    # Blocks.

    def _inside(self, block: Block) -> bool:
        return bool(self.divergence.inside >> block.index & 1)

    def _block(self, block: Block) -> None:
        emitter, builder = self.emitter, self.emitter.builder
        emitter.frozen = self.divergence.frozen[block.index]
        masks = self.ready if block.index in self.ready else self.pending
        if self._inside(block):
            emitter.block_mask = builder.load(masks[block.index])
        else:
            emitter.block_mask = builder.load(self.live)
        if block.index in masks:
            builder.store(ir.Constant(I32, 0), masks[block.index])
        for tool in self.plan.tools:
            tool.entered(emitter, block)
        for made in block.instructions:
            emitter.emit(made)
        mask = emitter.block_mask
        if block.ending == "trap":
            emitter.fault(abi.Code.TRAP, block.last, mask, None)
        elif block.ending == "barrier":
            self._barrier(block, mask)
        elif block.guard is None:
            self._go(block, block.follow, mask)
        else:
            self._branch(block, mask)

    def _branch(self, block: Block, mask: Any) -> None:
        emitter, builder = self.emitter, self.builder
        assert block.guard is not None
        assert block.target is not None
        guard = emitter.guard_value(block.guard.register, block.guard.negated)
        if guard.type == I1:
            yes, no = self._fork(guard)
            self._at(yes, lambda: self._go(block, block.target or 0, mask))
            self._at(no, lambda: self._go(block, block.follow, mask))
            return
        taken = builder.and_(mask, guard)
        stays = builder.and_(mask, builder.not_(guard))
        for tool in self.plan.tools:
            # Around a guarded barrier or trap the branch has no instruction of its own.
            if block.last is not None:
                tool.branched(emitter, block.last, taken)
        zero = ir.Constant(I32, 0)
        if EXIT in (block.target, block.follow):
            leaving, staying, stay = (
                (taken, stays, block.follow)
                if block.target == EXIT
                else (stays, taken, block.target)
            )
            self._leave(leaving)
            none, some = self._fork(builder.icmp_unsigned("==", staying, zero))
            self._at(none, lambda: self._next(block, None))
            if stay == EXIT:
                self._at(some, lambda: self._go(block, EXIT, staying))
            else:
                self._at(some, lambda: self._go(block, stay, staying))
            return
        none, rest = self._fork(builder.icmp_unsigned("==", taken, zero))
        self._at(none, lambda: self._go(block, block.follow, mask))
        emitter.builder = ir.IRBuilder(rest)
        every, split = self._fork(self.builder.icmp_unsigned("==", stays, zero))
        self._at(every, lambda: self._go(block, block.target or 0, mask))
        self._at(split, lambda: self._split(block, taken, stays))

    def _split(self, block: Block, taken: Any, stays: Any) -> None:
        assert block.target is not None
        for successor, mask in ((block.target, taken), (block.follow, stays)):
            self._wait_at(successor, mask)
        lowest = min(block.target, block.follow)
        if any(successor <= block.index for successor in block.successors):
            self._spend(block, lowest)
        self._next(block, lowest)

    def _fork(self, condition: Any) -> tuple[Any, Any]:
        yes = self.emitter.function.append_basic_block("yes")
        no = self.emitter.function.append_basic_block("no")
        self.builder.cbranch(condition, yes, no)
        return yes, no

    def _at(self, where: Any, make: Any) -> None:
        self.emitter.builder = ir.IRBuilder(where)
        make()

    def _wait_at(self, block: int, mask: Any) -> None:
        where = self.pending[block]
        self.builder.store(self.builder.or_(self.builder.load(where), mask), where)

    def _leave(self, mask: Any) -> None:
        """Lanes end for good."""
        builder = self.builder
        live = builder.and_(builder.load(self.live), builder.not_(mask))
        builder.store(live, self.live)
        for tool in self.plan.tools:
            tool.ended(self.emitter, mask)

    def _go(self, block: Block, to: int, mask: Any) -> None:
        """All lanes of `mask` go on at one block, or end."""
        if to == EXIT:
            self._leave(mask)
            self._next(block, None)
            return
        if to <= block.index:
            self._spend(block, to)
        if to in self.pending:
            self._wait_at(to, mask)
        self._next(block, to)

    def _next(self, block: Block, lanes_at: int | None) -> None:
        """Run the lowest block that has lanes; there are some at `lanes_at` if given."""
        builder = self.builder
        candidates = members(self.divergence.waiting[block.index]) if self._inside(block) else []
        for candidate in candidates:
            if lanes_at is not None and candidate >= lanes_at:
                continue
            where = self.ready.get(candidate, self.pending[candidate])
            has = builder.icmp_unsigned("!=", builder.load(where), ir.Constant(I32, 0))
            rest = self.emitter.function.append_basic_block("rest")
            builder.cbranch(has, self.heads[candidate], rest)
            builder = self.emitter.builder = ir.IRBuilder(rest)
        if lanes_at is not None:
            builder.branch(self.heads[lanes_at])
        elif self.idle is not None and self._inside(block):
            builder.branch(self.idle)
        else:
            builder.ret(ir.Constant(I32, abi.DONE))

    def _spend(self, block: Block, to: int) -> None:
        """Take the instructions of one turn of a loop from the budget; look at the flag."""
        emitter, builder = self.emitter, self.builder
        cost = sum(len(b.all) for b in self.graph.blocks[to : block.index + 1])
        left = builder.sub(builder.load(self.budget), ir.Constant(I64, max(cost, 1)))
        builder.store(left, self.budget)
        # Atomic: a plain load would be moved out of the loop that it is to end.
        where = emitter.field(emitter.launch, abi.Launch, "cancel")
        flag = builder.load_atomic(where, "monotonic", 4, typ=I32)
        stop = builder.or_(
            builder.icmp_signed("<", left, ir.Constant(I64, 0)),
            builder.icmp_unsigned("!=", flag, ir.Constant(I32, 0)),
        )
        stopped, on = self._fork(stop)
        emitter.builder = ir.IRBuilder(stopped)
        spent, cancelled = self._fork(emitter.builder.icmp_signed("<", left, ir.Constant(I64, 0)))
        for where, code in ((spent, abi.Code.BUDGET), (cancelled, abi.Code.CANCELLED)):
            emitter.builder = ir.IRBuilder(where)
            emitter.fault(code, block.last, emitter.block_mask, None)
        emitter.builder = ir.IRBuilder(on)

    # Barriers.

    def _barrier(self, block: Block, mask: Any) -> None:
        emitter = self.emitter
        made = block.last
        assert made is not None
        number = self._first(made, "a", mask)
        count: Any = ir.Constant(I32, 0)
        if made.operands.get("b") is not None:
            count = self._first(made, "b", mask)
        for tool in self.plan.tools:
            tool.waited(emitter, made, number, count)
        self._set("barrier", number)
        self._set("barrier_threads", count)
        self._vote(made, mask)
        if not self._inside(block):
            self._set("arrived", mask)
            self._suspend(block.follow, self._kept(block.follow), masks=False)
            return
        self._wait_at(block.follow, mask)
        self._next(block, None)

    def _vote(self, made: Instruction, mask: Any) -> None:
        """Count for a barrier that reduces the lanes that said yes, for `and` no."""
        operand = made.operands.get("p")
        if operand is None:
            return
        emitter, builder = self.emitter, self.builder
        said = lanes.mask_bits(builder, emitter.vector(operand, SCALARS["pred"]))
        if made.slots["op"] == "and":
            said = builder.not_(said)
        count = lanes.intrinsic(builder, "ctpop", [builder.and_(said, mask)])
        self._set("votes", builder.add(emitter.field(emitter.warp, abi.Warp, "votes"), count))

    def _first(self, made: Any, name: str, mask: Any) -> Any:
        """An operand as the lowest lane has it."""
        operand, scalar = made.operands[name], made.types[name]
        if self.emitter.uniform(operand):
            return self.emitter.base(operand, scalar)
        values = self.emitter.vector(operand, scalar)
        return self.builder.extract_element(values, first_lane(self.builder, mask))

    def _idle(self) -> None:
        """No lane can go on: the warp is done, or it waits."""
        emitter = self.emitter
        builder = emitter.builder = ir.IRBuilder(self.idle)
        waiting: Any = ir.Constant(I32, 0)
        for resume in self.resumes:
            if resume in self.pending:
                waiting = builder.or_(waiting, builder.load(self.pending[resume]))
        done, wait = self._fork(builder.icmp_unsigned("==", waiting, ir.Constant(I32, 0)))
        ir.IRBuilder(done).ret(ir.Constant(I32, abi.DONE))
        emitter.builder = ir.IRBuilder(wait)
        self._set("arrived", waiting)
        for resume in self.resumes:
            if resume not in self.pending:
                continue
            has = self.builder.icmp_unsigned(
                "!=", self.builder.load(self.pending[resume]), ir.Constant(I32, 0)
            )
            here, rest = self._fork(has)
            emitter.builder = ir.IRBuilder(here)
            self._suspend(resume, self._kept(resume), masks=True)
            emitter.builder = ir.IRBuilder(rest)
        emitter.builder.unreachable()

    def _suspend(self, resume: int, kept: Iterable[int], *, masks: bool) -> None:
        self._keep(kept, restore=False)
        if masks:
            self._keep_masks(restore=False)
        self._set("live", self.builder.load(self.live))
        self._set("budget", self.builder.load(self.budget))
        self.builder.ret(ir.Constant(I32, resume))

    def _set(self, name: str, value: Any) -> None:
        where = self.emitter.place(self.emitter.warp, abi.Warp, name)[0]
        self.builder.store(value, where)

    def _from_inside(self, resume: int) -> bool:
        return any(
            b.ending == "barrier" and b.follow == resume and self._inside(b)
            for b in self.graph.blocks
        )

    def _kept(self, resume: int) -> list[int]:
        """The registers that must outlive a wait; all that anybody waits with, if inside."""
        needed = self.plan.liveness.at_start[resume]
        if self._from_inside(resume):
            for block in self.graph.blocks:
                if self._inside(block):
                    needed |= self.divergence.frozen[block.index]
                    needed |= self.plan.liveness.at_start[block.index]
        return members(needed)

    def _keep(self, registers: Iterable[int], *, restore: bool) -> None:
        for index in registers:
            slot = self.emitter.slots[index]
            self._move(("main", index), slot.main, restore=restore)
            if slot.second is not None:
                self._move(("second", index), slot.second, restore=restore)

    def _keep_masks(self, *, restore: bool) -> None:
        for index, where in self.pending.items():
            self._move(("mask", index), where, restore=restore)

    def _move(self, key: tuple[str, int], slot: Any, *, restore: bool) -> None:
        builder = self.builder
        kind = slot.allocated_type
        size = _bytes(kind)
        offset = ir.Constant(I64, self.state.place(key, size))
        where = builder.gep(self.emitter.warp, [offset], source_etype=I8)
        if restore:
            builder.store(builder.load(where, typ=kind), slot)
        else:
            builder.store(builder.load(slot), where)


def _bytes(kind: ir.Type) -> int:
    if isinstance(kind, ir.VectorType):
        return int(kind.count) * _bytes(kind.element)
    return max(int(kind.width) // 8, 1)
