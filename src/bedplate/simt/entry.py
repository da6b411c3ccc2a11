"""A kernel as a native entry of the HAL: `i32 entry(const bp_native_launch*, u64, u64)`.

One piece of machine code serves all kernels; each gets a copy of it with its own `Facts`.
The entry makes the `Launch` of `abi` on its stack, runs the compiled kernel, and turns a
fault record into one sentence with kernel, place, lane, thread and block. The HAL checked
arguments and sizes when the launch was submitted.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import Structure, c_uint64, c_void_p
from functools import partial
from typing import Any

from llvmlite import ir

from bedplate.simt import abi, lanes
from bedplate.simt.lanes import I1, I8, I32, I64, PTR
from bedplate.simt.nativeabi import (
    CANCELLED,
    LAUNCH_FAULT,
    OUT_OF_MEMORY,
    TEXT_BYTES,
    NativeFault,
    NativeLaunch,
)
from bedplate.simt.scalar import LANES
from bedplate.simt.structure import field_place

ENDLESS = 1 << 62
"""A budget that nothing spends."""
_WHAT_BYTES = 96
_STACK_WINDOWS = 64
"""Windows that are copied on the stack; more are put on the heap."""


class Facts(Structure):
    """What an entry knows of its kernel; Python fills it in once.

    `line` runs blocks whose first size is a multiple of 32, so that a warp is
    a piece of a line, `any` all others. `storage` is where
    the variables of the module lie. `offsets` has for each instruction where its text begins
    in `texts`.
    """

    _fields_ = [
        ("line", c_void_p),
        ("any", c_void_p),
        ("symbols", c_void_p),
        ("storage", abi.Window),
        ("shared_bytes", c_uint64),
        ("name", c_void_p),
        ("texts", c_void_p),
        ("offsets", c_void_p),
        ("instructions", c_uint64),
    ]


_MESSAGES = {
    abi.Code.BOUNDS: "address 0x%llx is in no allocation",
    abi.Code.MISALIGNED: "address 0x%llx is not aligned",
    abi.Code.TRAP: "the kernel trapped",
    abi.Code.BUDGET: "the instruction budget is spent",
    abi.Code.BARRIER: "threads wait at barriers that can never complete",
    abi.Code.SYNC: "a .sync mask names lanes that are not here",
    abi.Code.DEADLOCK: "lanes spin for others of their warp: SIMT deadlock",
}


TEXT = """
define i1 @entry.claim(ptr %where) alwaysinline {
  %pair = cmpxchg ptr %where, i32 0, i32 1 acq_rel acquire
  %got = extractvalue { i32, i1 } %pair, 1
  ret i1 %got
}
define i32 @entry.run(ptr %code, ptr %launch, i64 %first, i64 %count) alwaysinline {
  %result = call i32 %code(ptr %launch, i64 %first, i64 %count)
  ret i32 %result
}
"""
"""What llvmlite has no words for."""


def build(module: ir.Module) -> ir.Function:
    """Add `entry` and its `facts` to a module."""
    return _Entry(module).build()


class _Entry:
    def __init__(self, module: ir.Module) -> None:
        self.module = module
        kind = ir.FunctionType(I32, [PTR, I64, I64])
        self.function = ir.Function(module, kind, "entry")
        self.native, self.first, self.count = self.function.args
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.facts = ir.GlobalVariable(
            module, ir.ArrayType(I64, ctypes.sizeof(Facts) // 8), "facts"
        )
        self.facts.initializer = ir.Constant(self.facts.value_type, None)
        self.facts.align = 8
        self.facts.type = PTR
        self.print = ir.Function(module, ir.FunctionType(I32, [PTR, I64, PTR], True), "snprintf")

    def build(self) -> ir.Function:
        builder = self.builder
        self.launch = lanes.room(builder, ctypes.sizeof(abi.Launch), 16)
        self.record = lanes.room(builder, ctypes.sizeof(abi.FaultRecord), 16)
        self.sites = lanes.room(builder, abi.SITES * ctypes.sizeof(abi.Window), 16)
        self.what = lanes.room(builder, _WHAT_BYTES, 16)
        self.table = lanes.room(builder, (_STACK_WINDOWS + 1) * ctypes.sizeof(abi.Window), 16)
        self.sizes = [self._get(self.native, NativeLaunch, "block", axis) for axis in range(3)]
        for where, size in (
            (self.launch, ctypes.sizeof(abi.Launch)),
            (self.record, ctypes.sizeof(abi.FaultRecord)),
            (self.sites, abi.SITES * ctypes.sizeof(abi.Window)),
        ):
            self._zero(where, size)
        table, count = self._windows()
        self._fill(table, count)
        result = self._run()
        self._give_back(table)
        failed = self.builder.icmp_signed("!=", result, ir.Constant(I32, 0))
        self._when(failed, self._tell)
        self.builder.ret(ir.Constant(I32, 0))
        return self.function

    # Pieces of code.

    def _get(self, pointer: Any, structure: type, name: str, index: int = 0) -> Any:
        where, kind = self._place(pointer, structure, name, index)
        return self.builder.load(where, typ=kind)

    def _set(self, pointer: Any, structure: type, name: str, value: Any, index: int = 0) -> None:
        self.builder.store(value, self._place(pointer, structure, name, index)[0])

    def _place(
        self, pointer: Any, structure: Any, name: str, index: int = 0
    ) -> tuple[Any, ir.Type]:
        kind = dict(structure._fields_)[name]
        where, found = field_place(self.builder, pointer, structure, name, index)
        return where, PTR if kind is c_void_p else found

    def _fact(self, name: str, index: int = 0) -> Any:
        return self._get(self.facts, Facts, name, index)

    def _when(self, condition: Any, body: Callable[[], None]) -> None:
        yes = self.function.append_basic_block("when")
        after = self.function.append_basic_block("after")
        self.builder.cbranch(condition, yes, after)
        self.builder = ir.IRBuilder(yes)
        body()
        if not self.builder.block.is_terminated:
            self.builder.branch(after)
        self.builder = ir.IRBuilder(after)

    def _text(self, text: str) -> Any:
        data = bytearray(text.encode() + b"\0")
        kind = ir.ArrayType(I8, len(data))
        made = ir.GlobalVariable(self.module, kind, self.module.get_unique_name("text"))
        made.global_constant, made.linkage = True, "internal"
        made.initializer = ir.Constant(kind, data)
        made.type = PTR
        return made

    def _zero(self, where: Any, size: int) -> None:
        arguments = [where, ir.Constant(I8, 0), ir.Constant(I64, size), ir.Constant(I1, 0)]
        function = lanes.declared(self.module, "llvm.memset.p0.i64", ir.VoidType(), arguments)
        self.builder.call(function, arguments)

    def _copy(self, to: Any, source: Any, size: Any) -> None:
        arguments = [to, source, size, ir.Constant(I1, 0)]
        function = lanes.declared(self.module, "llvm.memcpy.p0.p0.i64", ir.VoidType(), arguments)
        self.builder.call(function, arguments)

    def _wide(self, value: Any) -> Any:
        return self.builder.zext(value, I64)

    # The HAL's fault record.

    def _claimed(self, status: int, block: Any) -> Any:
        """The HAL's fault record; `won` when it is ours to write."""
        fault = self._get(self.native, NativeLaunch, "fault")
        builder = self.builder
        there = builder.icmp_unsigned("!=", builder.ptrtoint(fault, I64), ir.Constant(I64, 0))
        before = builder.block
        look = self.function.append_basic_block("claim")
        after = self.function.append_basic_block("claimed")
        builder.cbranch(there, look, after)
        builder = self.builder = ir.IRBuilder(look)
        where = self._place(fault, NativeFault, "claimed")[0]
        got = builder.call(lanes.declared(self.module, "entry.claim", I1, [where]), [where])
        write = self.function.append_basic_block("write")
        builder.cbranch(got, write, after)
        self.builder = ir.IRBuilder(write)
        self._set(fault, NativeFault, "status", ir.Constant(I32, status))
        self._set(fault, NativeFault, "block", block)
        self.builder.branch(after)
        self.builder = builder = ir.IRBuilder(after)
        self.won = builder.phi(I1)
        self.won.add_incoming(ir.Constant(I1, 0), before)
        self.won.add_incoming(ir.Constant(I1, 0), look)
        self.won.add_incoming(ir.Constant(I1, 1), write)
        return fault

    # The launch.

    def _windows(self) -> tuple[Any, Any]:
        """The HAL's table, or a copy with the module's own variables in front of it."""
        builder = self.builder
        given = self._get(self.native, NativeLaunch, "windows")
        count = self._get(self.native, NativeLaunch, "window_count")
        self.given = given
        own = self._get(self._place(self.facts, Facts, "storage")[0], abi.Window, "size")
        has = self.builder.icmp_unsigned("!=", own, ir.Constant(I64, 0))
        builder = self.builder
        before = builder.block
        copy, heap, fill, after = (
            self.function.append_basic_block(name) for name in ("copy", "heap", "fill", "table")
        )
        builder.cbranch(has, copy, after)
        size = ir.Constant(I64, ctypes.sizeof(abi.Window))
        builder = self.builder = ir.IRBuilder(copy)
        total = builder.add(count, ir.Constant(I64, 1))
        bytes_ = builder.mul(total, size)
        many = builder.icmp_unsigned(">", count, ir.Constant(I64, _STACK_WINDOWS))
        builder.cbranch(many, heap, fill)
        builder = self.builder = ir.IRBuilder(heap)
        allocate = ir.Function(self.module, ir.FunctionType(PTR, [I64]), "malloc")
        got = builder.call(allocate, [bytes_])
        none = builder.icmp_unsigned("==", builder.ptrtoint(got, I64), ir.Constant(I64, 0))
        self._when(none, partial(self._return, ir.Constant(I32, OUT_OF_MEMORY)))
        heap_end = self.builder.block
        self.builder.branch(fill)
        builder = self.builder = ir.IRBuilder(fill)
        made = builder.phi(PTR)
        made.add_incoming(self.table, copy)
        made.add_incoming(got, heap_end)
        storage = self._place(self.facts, Facts, "storage")[0]
        self._copy(made, storage, size)
        rest = self.builder.gep(made, [size], source_etype=I8)
        self._copy(rest, given, self.builder.mul(count, size))
        fill_end = self.builder.block
        self.builder.branch(after)
        builder = self.builder = ir.IRBuilder(after)
        table, number = builder.phi(PTR), builder.phi(I64)
        for phi, one, other in ((table, given, made), (number, count, total)):
            phi.add_incoming(one, before)
            phi.add_incoming(other, fill_end)
        return table, number

    def _give_back(self, table: Any) -> None:
        """A table on the heap is neither the HAL's nor the one on the stack."""
        builder = self.builder
        release = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [PTR]), "free")
        place, given, own = (
            builder.ptrtoint(pointer, I64) for pointer in (table, self.given, self.table)
        )
        ours = builder.and_(
            builder.icmp_unsigned("!=", place, given), builder.icmp_unsigned("!=", place, own)
        )
        self._when(ours, lambda: self.builder.call(release, [table]) and None)

    def _fill(self, table: Any, count: Any) -> None:
        dynamic = self._wide(self._get(self.native, NativeLaunch, "dynamic_shared_bytes"))
        shared = self.builder.add(dynamic, self._fact("shared_bytes"))
        builder = self.builder
        budget = self._get(self.native, NativeLaunch, "budget")
        none = builder.icmp_unsigned("==", budget, ir.Constant(I64, 0))
        cancel = self._get(self.native, NativeLaunch, "cancel")
        # Kernels look at the flag without asking whether there is one.
        never = ir.GlobalVariable(self.module, I32, "never")
        never.initializer, never.linkage = ir.Constant(I32, 0), "internal"
        lacks = builder.icmp_unsigned("==", builder.ptrtoint(cancel, I64), ir.Constant(I64, 0))
        never.type = PTR
        values = {
            "struct_size": ir.Constant(I64, ctypes.sizeof(abi.Launch)),
            "parameters": self._get(self.native, NativeLaunch, "parameters"),
            "windows": table,
            "window_count": count,
            "symbols": self._fact("symbols"),
            "shared_bytes": shared,
            "dynamic_shared_bytes": dynamic,
            "budget": builder.select(none, ir.Constant(I64, ENDLESS), budget),
            "cancel": builder.select(lacks, never, cancel),
            "fault": self.record,
            "sites": self.sites,
        }
        for name, value in values.items():
            self._set(self.launch, abi.Launch, name, value)
        for axis in range(3):
            size = self._get(self.native, NativeLaunch, "grid", axis)
            self._set(self.launch, abi.Launch, "grid", size, axis)
            self._set(self.launch, abi.Launch, "block", self.sizes[axis], axis)

    def _run(self) -> Any:
        builder = self.builder
        cut = builder.and_(self.sizes[0], ir.Constant(I32, LANES - 1))
        line = builder.icmp_unsigned("==", cut, ir.Constant(I32, 0))
        code = builder.select(line, self._fact("line"), self._fact("any"))
        arguments = [code, self.launch, self.first, self.count]
        return builder.call(lanes.declared(self.module, "entry.run", I32, arguments), arguments)

    # Faults.

    def _tell(self) -> None:
        builder = self.builder
        code = self._get(self.record, abi.FaultRecord, "code")
        for given, status in (
            (abi.Code.CANCELLED, CANCELLED),
            (abi.Code.MEMORY, OUT_OF_MEMORY),
        ):
            here = self.builder.icmp_unsigned("==", code, ir.Constant(I32, int(given)))
            result = ir.Constant(I32, status)
            self._when(here, partial(self._return, result))
        block = self._get(self.record, abi.FaultRecord, "block")
        fault = self._claimed(LAUNCH_FAULT, block)
        self._when(self.won, lambda: self._sentence(fault, code, block))
        builder = self.builder
        builder.ret(ir.Constant(I32, LAUNCH_FAULT))

    def _sentence(self, fault: Any, code: Any, block: Any) -> None:
        mask = self._get(self.record, abi.FaultRecord, "mask")
        builder = self.builder
        some = builder.icmp_unsigned("!=", mask, ir.Constant(I32, 0))
        lane = builder.select(
            some, lanes.intrinsic(builder, "cttz", [mask, ir.Constant(I1, 0)]), ir.Constant(I32, 0)
        )
        addresses = self._place(self.record, abi.FaultRecord, "addresses")[0]
        place = builder.gep(
            addresses, [builder.mul(self._wide(lane), ir.Constant(I64, 8))], source_etype=I8
        )
        address = builder.load(place, typ=I64)
        self._set(fault, NativeFault, "value", address)
        for given, words in _MESSAGES.items():
            here = self.builder.icmp_unsigned("==", code, ir.Constant(I32, int(given)))
            self._when(here, partial(self._what, words, address))
        number = self._get(self.record, abi.FaultRecord, "instruction")
        warp = self._get(self.record, abi.FaultRecord, "warp")
        text = self._instruction(number)
        builder = self.builder
        linear = builder.add(builder.mul(warp, ir.Constant(I32, LANES)), lane)
        grid = [self._wide(self._get(self.native, NativeLaunch, "grid", n)) for n in range(2)]
        sizes = [self._wide(size) for size in self.sizes]
        where = self._place(fault, NativeFault, "text")[0]
        self.builder.call(
            self.print,
            [
                where,
                ir.Constant(I64, TEXT_BYTES),
                self._text(
                    "%s: kernel %.48s, line %.40s, lane %u, "
                    "thread (%llu, %llu, %llu), block (%llu, %llu, %llu)"
                ),
                self.what,
                self._fact("name"),
                text,
                lane,
                *self._coordinates(self._wide(linear), sizes),
                *self._coordinates(block, grid),
            ],
        )

    def _return(self, result: Any) -> None:
        self.builder.ret(result)

    def _what(self, words: str, address: Any) -> None:
        size = ir.Constant(I64, _WHAT_BYTES)
        self.builder.call(self.print, [self.what, size, self._text(words), address])

    def _instruction(self, number: Any) -> Any:
        """Line and name of an instruction; `?` when the fault is nobody's."""
        builder = self.builder
        wide = self._wide(number)
        known = builder.icmp_unsigned("<", wide, self._fact("instructions"))
        builder = self.builder
        index = builder.select(known, wide, ir.Constant(I64, 0))
        table, texts = self._fact("offsets"), self._fact("texts")
        builder = self.builder
        place = builder.gep(table, [builder.mul(index, ir.Constant(I64, 4))], source_etype=I8)
        offset = builder.zext(builder.load(place, typ=I32), I64)
        found = builder.gep(texts, [offset], source_etype=I8)
        return builder.select(known, found, self._text("?"))

    def _coordinates(self, linear: Any, sizes: Any) -> tuple[Any, Any, Any]:
        builder = self.builder
        rest = builder.udiv(linear, sizes[0])
        return (
            builder.urem(linear, sizes[0]),
            builder.urem(rest, sizes[1]),
            builder.udiv(rest, sizes[1]),
        )
