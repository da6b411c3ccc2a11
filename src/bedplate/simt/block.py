"""The block scheduler, compiled beside the warp function: `launch` of the ABI.

One host thread runs one block at a time, its warps in turn, each until it waits or ends.
When all wait, a barrier whose threads have all arrived lets its warps go on; threads that
ended do not count. If no barrier can be completed the block can never end: a fault, not a
hang. Shared and local memory begin each block with the same junk, so that a kernel that
relies on their being zero fails every time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from llvmlite import ir

from bedplate.simt import abi, lanes
from bedplate.simt.lanes import I1, I8, I32, I64, PTR
from bedplate.simt.plan import WarpFunction
from bedplate.simt.scalar import LANES
from bedplate.simt.structure import field_place

"""Byte that fills shared memory; as a float it is about -2.9e-16, as an index far away."""
BARRIERS = 16
"""Barriers of a block, for every architecture."""


def build(module: ir.Module, warp: WarpFunction, local_bytes: int) -> ir.Function:
    """Add `launch` to a module that has a warp function."""
    return _Launch(module, warp, local_bytes).build()


class _Launch:
    def __init__(self, module: ir.Module, warp: WarpFunction, local_bytes: int) -> None:
        self.warp = warp
        self.local_bytes = local_bytes
        kind = ir.FunctionType(I32, [PTR, I64, I64])
        self.function = ir.Function(module, kind, "launch")
        self.launch, self.first, self.count = self.function.args
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))

    def field(self, pointer: Any, structure: type, name: str, index: int = 0) -> Any:
        where, kind = field_place(self.builder, pointer, structure, name, index)
        return self.builder.load(where, typ=kind)

    def set(self, pointer: Any, structure: type, name: str, value: Any, index: int = 0) -> None:
        where, _ = field_place(self.builder, pointer, structure, name, index)
        self.builder.store(value, where)

    def loop(self, start: Any, end: Any, body: Callable[[Any], None]) -> None:
        """`for i in range(start, end): body(i)`."""
        builder = self.builder
        before = builder.block
        head = self.function.append_basic_block("loop")
        inside = self.function.append_basic_block("body")
        after = self.function.append_basic_block("after")
        builder.branch(head)
        self.builder = ir.IRBuilder(head)
        index = self.builder.phi(start.type)
        index.add_incoming(start, before)
        self.builder.cbranch(self.builder.icmp_unsigned("<", index, end), inside, after)
        self.builder = ir.IRBuilder(inside)
        body(index)
        step = self.builder.add(index, ir.Constant(start.type, 1))
        index.add_incoming(step, self.builder.block)
        self.builder.branch(head)
        self.builder = ir.IRBuilder(after)

    def when(self, condition: Any, body: Callable[[], None]) -> None:
        """`if condition: body()`."""
        yes = self.function.append_basic_block("when")
        after = self.function.append_basic_block("after")
        self.builder.cbranch(condition, yes, after)
        self.builder = ir.IRBuilder(yes)
        body()
        if not self.builder.block.is_terminated:
            self.builder.branch(after)
        self.builder = ir.IRBuilder(after)

    def build(self) -> ir.Function:
        builder = self.builder
        sizes = [self.field(self.launch, abi.Launch, "block", axis) for axis in range(3)]
        self.threads = builder.mul(builder.mul(sizes[0], sizes[1]), sizes[2])
        thirty_one = ir.Constant(I32, LANES - 1)
        self.warps = builder.lshr(builder.add(self.threads, thirty_one), ir.Constant(I32, 5))
        self.block = lanes.room(builder, ctypes.sizeof(abi.Block), 16)
        self.shared_bytes = self.field(self.launch, abi.Launch, "shared_bytes")
        self._memory()
        self.loop(ir.Constant(I64, 0), self.count, self._block)
        self._free()
        self.builder.ret(ir.Constant(I32, 0))
        return self.function

    def _memory(self) -> None:
        """One piece for shared memory, the warps' states, and their local memory."""
        builder = self.builder
        up = ir.Constant(I64, 127)
        down = ir.Constant(I64, ~127)
        shared = builder.and_(builder.add(self.shared_bytes, up), down)
        warps = builder.zext(self.warps, I64)
        states = builder.mul(warps, ir.Constant(I64, self.warp.state_bytes))
        states = builder.and_(builder.add(states, up), down)
        local = builder.mul(warps, ir.Constant(I64, LANES * self.local_bytes))
        total = builder.add(builder.add(shared, states), local)
        total = builder.and_(builder.add(total, ir.Constant(I64, 255)), down)
        kind = ir.FunctionType(PTR, [I64, I64])
        allocate = ir.Function(builder.module, kind, "aligned_alloc")
        self.memory = builder.call(allocate, [ir.Constant(I64, 128), total])
        self.states = builder.gep(self.memory, [shared], source_etype=I8)
        after = builder.add(shared, states)
        self.local = builder.gep(self.memory, [after], source_etype=I8)
        self.release = ir.Function(builder.module, ir.FunctionType(ir.VoidType(), [PTR]), "free")
        lacking = builder.icmp_unsigned(
            "==", builder.ptrtoint(self.memory, I64), ir.Constant(I64, 0)
        )
        self.when(lacking, lambda: self._fail(abi.Code.MEMORY))

    def _free(self) -> None:
        self.builder.call(self.release, [self.memory])

    def _fail(self, code: abi.Code | None) -> None:
        """Return with a fault; None: the warp has filled in the record."""
        record = self.field(self.launch, abi.Launch, "fault")
        if code is not None:
            values = {"code": int(code), "instruction": 0xFFFFFFFF, "mask": 0, "warp": 0}
            for name, value in values.items():
                self.set(record, abi.FaultRecord, name, ir.Constant(I32, value))
            number = self.field(self.block, abi.Block, "index")
            self.set(record, abi.FaultRecord, "block", number)
        self._free()
        found = self.field(record, abi.FaultRecord, "code")
        self.builder.ret(self.builder.neg(found))

    def _block(self, turn: Any) -> None:
        builder = self.builder
        number = builder.add(self.first, turn)
        self.set(self.block, abi.Block, "index", number)
        shared = builder.ptrtoint(self.memory, I64)
        self.set(self.block, abi.Block, "shared", shared)
        self.set(self.block, abi.Block, "warps", self.warps)
        wide = builder.zext(self.field(self.launch, abi.Launch, "grid", 0), I64)
        high = builder.zext(self.field(self.launch, abi.Launch, "grid", 1), I64)
        rest = builder.udiv(number, wide)
        ctaid = (builder.urem(number, wide), builder.urem(rest, high), builder.udiv(rest, high))
        for axis, value in enumerate(ctaid):
            self.set(self.block, abi.Block, "ctaid", builder.trunc(value, I32), axis)
        fill = lanes.declared(
            builder.module,
            "llvm.memset.p0.i64",
            ir.VoidType(),
            [self.memory, ir.Constant(I8, 0), self.shared_bytes, ir.Constant(I1, 0)],
        )
        builder.call(
            fill,
            [self.memory, ir.Constant(I8, abi.JUNK), self.shared_bytes, ir.Constant(I1, 0)],
        )
        if self.local_bytes:
            warps = builder.zext(self.warps, I64)
            size = builder.mul(warps, ir.Constant(I64, LANES * self.local_bytes))
            builder.call(fill, [self.local, ir.Constant(I8, abi.JUNK), size, ir.Constant(I1, 0)])
        zero = ir.Constant(I32, 0)
        if not self.warp.barriers:
            self.loop(zero, self.warps, self._start_and_run)
            return
        self.loop(zero, self.warps, self._start)
        self._rounds()

    def _state(self, index: Any) -> Any:
        builder = self.builder
        offset = builder.mul(builder.zext(index, I64), ir.Constant(I64, self.warp.state_bytes))
        return builder.gep(self.states, [offset], source_etype=I8)

    def _start(self, index: Any) -> Any:
        """Set up a warp's state at the kernel's beginning."""
        state, builder = self._state(index), self.builder
        zero = ir.Constant(I32, 0)
        full = ir.Constant(I32, -1)
        left = builder.sub(self.threads, builder.mul(index, ir.Constant(I32, LANES)))
        short = builder.icmp_unsigned("<", left, ir.Constant(I32, LANES))
        some = builder.sub(builder.shl(ir.Constant(I32, 1), left), ir.Constant(I32, 1))
        values = {
            "label": zero,
            "live": builder.select(short, some, full),
            "index": index,
            "arrived": zero,
            "votes": zero,
            "budget": self.field(self.launch, abi.Launch, "budget"),
        }
        for name, value in values.items():
            self.set(state, abi.Warp, name, value)
        size = LANES * self.local_bytes
        offset = builder.mul(builder.zext(index, I64), ir.Constant(I64, size))
        local = builder.add(builder.ptrtoint(self.local, I64), offset)
        self.set(state, abi.Warp, "local", local)
        return state

    def _start_and_run(self, index: Any) -> None:
        state = self._start(index)
        result = self.builder.call(self.warp.function, [self.launch, self.block, state])
        failed = self.builder.icmp_signed("==", result, ir.Constant(I32, abi.FAULTED))
        self.when(failed, lambda: self._fail(None))

    def _rounds(self) -> None:
        """Run warps until all are done; between rounds let complete barriers go."""
        head = self.function.append_basic_block("round")
        finished = self.function.append_basic_block("finished")
        running, moving = self.builder.alloca(I32), self.builder.alloca(I32)
        self.builder.branch(head)
        self.builder = ir.IRBuilder(head)
        self.builder.store(ir.Constant(I32, 0), running)
        self.builder.store(ir.Constant(I32, 0), moving)
        self.loop(ir.Constant(I32, 0), self.warps, lambda index: self._run(index, running, moving))
        none = self.builder.icmp_unsigned("==", self.builder.load(running), ir.Constant(I32, 0))
        waiting = self.function.append_basic_block("waiting")
        self.builder.cbranch(none, finished, waiting)
        self.builder = ir.IRBuilder(waiting)
        released = self.builder.call(self._releaser(), [self.states, self.warps])
        going = self.builder.or_(released, self.builder.load(moving))
        stuck = self.builder.icmp_unsigned("==", going, ir.Constant(I32, 0))
        self.when(stuck, lambda: self._fail(abi.Code.BARRIER))
        self.builder.branch(head)
        self.builder = ir.IRBuilder(finished)

    def _run(self, index: Any, running: Any, moving: Any) -> None:
        """Run a warp that neither waits nor is done; count those not done, and those moving."""
        state = self._state(index)
        label = self.field(state, abi.Warp, "label")
        done = self.builder.icmp_signed("==", label, ir.Constant(I32, abi.DONE))

        def go() -> None:
            result = self.builder.call(self.warp.function, [self.launch, self.block, state])
            failed = self.builder.icmp_signed("==", result, ir.Constant(I32, abi.FAULTED))
            self.when(failed, lambda: self._fail(None))
            self.set(state, abi.Warp, "label", result)

        def unless_done() -> None:
            arrived = self.field(state, abi.Warp, "arrived")
            self.when(self.builder.icmp_unsigned("==", arrived, ir.Constant(I32, 0)), go)
            left = self.builder.icmp_signed(
                "!=", self.field(state, abi.Warp, "label"), ir.Constant(I32, abi.DONE)
            )
            arrived = self.field(state, abi.Warp, "arrived")
            free = self.builder.icmp_unsigned("==", arrived, ir.Constant(I32, 0))
            for where, more in ((running, left), (moving, self.builder.and_(left, free))):
                count = self.builder.add(self.builder.load(where), self.builder.zext(more, I32))
                self.builder.store(count, where)

        self.when(self.builder.not_(done), unless_done)

    def _releaser(self) -> ir.Function:
        """`i32 release(states, warps)`: let complete barriers go; how many were."""
        outer = self.builder, self.function
        kind = ir.FunctionType(I32, [PTR, I32])
        function = ir.Function(self.builder.module, kind, "release")
        function.linkage = "internal"
        function.attributes.add("noinline")
        self.function = function
        builder = self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        states, warps = function.args
        kept, self.states = self.states, states
        live, arrived, wanted = builder.alloca(I32), builder.alloca(I32), builder.alloca(I32)
        total, votes = builder.alloca(I32), builder.alloca(I32)
        self.votes = votes
        zero = ir.Constant(I32, 0)
        builder.store(zero, total)
        builder.store(zero, live)
        self.loop(zero, warps, lambda index: self._count_live(index, live))

        def one(number: Any) -> None:
            self.builder.store(zero, arrived)
            self.builder.store(zero, votes)
            self.builder.store(self.builder.load(live), wanted)
            self.loop(
                zero, warps, lambda index: self._count_arrived(index, number, arrived, wanted)
            )
            have = self.builder.load(arrived)
            complete = self.builder.and_(
                self.builder.icmp_unsigned("!=", have, zero),
                self.builder.icmp_unsigned(">=", have, self.builder.load(wanted)),
            )

            def release() -> None:
                self.loop(zero, warps, lambda index: self._let_go(index, number))
                more = self.builder.add(self.builder.load(total), ir.Constant(I32, 1))
                self.builder.store(more, total)

            self.when(complete, release)

        self.loop(zero, ir.Constant(I32, BARRIERS), one)
        self.builder.ret(self.builder.load(total))
        self.states = kept
        self.builder, self.function = outer
        return function

    def _count_live(self, index: Any, live: Any) -> None:
        state = self._state(index)
        label = self.field(state, abi.Warp, "label")
        here = self.builder.icmp_signed("!=", label, ir.Constant(I32, abi.DONE))

        def add() -> None:
            mask = self.field(state, abi.Warp, "live")
            count = lanes.intrinsic(self.builder, "ctpop", [mask])
            self.builder.store(self.builder.add(self.builder.load(live), count), live)

        self.when(here, add)

    def _at_barrier(self, state: Any, number: Any) -> Any:
        builder = self.builder
        label = self.field(state, abi.Warp, "label")
        arrived = self.field(state, abi.Warp, "arrived")
        here = builder.icmp_signed("!=", label, ir.Constant(I32, abi.DONE))
        waits = builder.icmp_unsigned("!=", arrived, ir.Constant(I32, 0))
        same = builder.icmp_unsigned("==", self.field(state, abi.Warp, "barrier"), number)
        return builder.and_(here, builder.and_(waits, same))

    def _count_arrived(self, index: Any, number: Any, arrived: Any, wanted: Any) -> None:
        state = self._state(index)

        def add() -> None:
            builder = self.builder
            mask = self.field(state, abi.Warp, "arrived")
            # A barrier with a count takes whole warps, as the hardware does.
            asked = self.field(state, abi.Warp, "barrier_threads")
            some = builder.icmp_unsigned("!=", asked, ir.Constant(I32, 0))
            counted = builder.select(some, ir.Constant(I32, LANES), _ones(builder, mask))
            builder.store(builder.add(builder.load(arrived), counted), arrived)
            self.when(some, lambda: self.builder.store(asked, wanted) and None)
            builder = self.builder
            said = self.field(state, abi.Warp, "votes")
            builder.store(builder.add(builder.load(self.votes), said), self.votes)

        self.when(self._at_barrier(state, number), add)

    def _let_go(self, index: Any, number: Any) -> None:
        state = self._state(index)

        def go() -> None:
            self.set(state, abi.Warp, "arrived", ir.Constant(I32, 0))
            self.set(state, abi.Warp, "votes", ir.Constant(I32, 0))
            self.set(state, abi.Warp, "result", self.builder.load(self.votes))

        self.when(self._at_barrier(state, number), go)


def _ones(builder: ir.IRBuilder, value: Any) -> Any:
    return lanes.intrinsic(builder, "ctpop", [value])
