"""`printf`: each active lane puts its format and its arguments into the launch's ring.

The function of the module walks the lanes and their formats with `printing.CLASSES`; what
lies outside of every allocation is a fault, whether or not the ring has room.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any

from llvmlite import ir

from bedplate.simt import abi, lanes, printing
from bedplate.simt.emitter import Emitter
from bedplate.simt.lanes import I32
from bedplate.simt.lowering.base import lowers
from bedplate.simt.module import Instruction, Register
from bedplate.simt.resolve import faulted_unless
from bedplate.simt.routine import NEXT_LANE, find
from bedplate.simt.scalar import SCALARS


@lowers("vprintf")
def vprintf(e: Emitter, made: Instruction) -> None:
    """The number of arguments, or -1 without a format."""
    formats, values = (e.vector(_value(made, name), SCALARS["u64"]) for name in "ab")
    number = ir.Constant(I32, made.number)
    arguments = [e.launch, e.block, e.warp, number, formats, values, e.mask, e.scratch]
    name = f"print.lanes.{e.local_bytes}"
    done = e.builder.call(lanes.declared(e.module, name, I32, arguments), arguments)
    faulted_unless(e, done)
    result = made.operands["d"]
    assert isinstance(result, Register)
    e.write(result, e.builder.load(e.scratch, typ=lanes.vector(I32), align=16))


def _value(made: Instruction, name: str) -> Any:
    value = made.operands[name]
    assert value is not None
    return value


def _at(structure: Any, name: str) -> int:
    return int(getattr(structure, name).offset)


def text(function: str) -> str:
    """The function of that name, in LLVM's assembly."""
    found = re.fullmatch(r"print\.lanes\.(\d+)", function)
    if found is None:
        raise ValueError(f"{function} is not the name of a printing function")
    classes = ", ".join(f"i8 {kind}" for kind in printing.CLASSES)
    record, ring, fault = abi.PrintRecord, abi.Ring, abi.FaultRecord
    who = "ptr %launch, ptr %block, ptr %warp, i64 %lane"
    return f"""{find("generic", int(found[1]))}
declare i32 @llvm.cttz.i32(i32, i1)
@print.classes = internal constant [256 x i8] [{classes}]

define internal i64 @print.format({who}, i64 %format, ptr %taken) noinline {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %nexti, %step ]
  %inside = phi i1 [ 0, %entry ], [ %nextinside, %step ]
  %long = phi i1 [ 0, %entry ], [ %nextlong, %step ]
  %count = phi i32 [ 0, %entry ], [ %nextcount, %step ]
  %at = phi i32 [ 0, %entry ], [ %nextat, %step ]
  %address = add i64 %format, %i
  %host = call ptr @find.generic({who}, i64 %address, i64 1)
  %lost = icmp eq ptr %host, null
  br i1 %lost, label %bad, label %look
bad:
  ret i64 %address
look:
  %c = load i8, ptr %host
  %zero = icmp eq i8 %c, 0
  %far = icmp uge i64 %i, {printing.MOST_FORMAT}
  %end = or i1 %zero, %far
  br i1 %end, label %done, label %step
step:
  %wide = zext i8 %c to i64
  %pc = getelementptr i8, ptr @print.classes, i64 %wide
  %class = load i8, ptr %pc
  %islong = icmp eq i8 %class, {printing.LONG}
  %isinteger = icmp eq i8 %class, {printing.INTEGER}
  %isword = icmp eq i8 %class, {printing.WORD}
  %isstar = icmp eq i8 %class, {printing.STAR}
  %ischaracter = icmp eq i8 %class, {printing.CHARACTER}
  %iskeep = icmp eq i8 %class, {printing.KEEP}
  %longinteger = and i1 %isinteger, %long
  %eight = or i1 %isword, %longinteger
  %some0 = or i1 %isinteger, %isword
  %some1 = or i1 %isstar, %ischaracter
  %some2 = or i1 %some0, %some1
  %some3 = and i1 %some2, %inside
  %few = icmp ult i32 %count, {printing.MOST_ARGUMENTS}
  %some = and i1 %some3, %few
  %size = select i1 %eight, i32 8, i32 4
  %less = sub i32 %size, 1
  %up = add i32 %at, %less
  %clear = xor i32 %less, -1
  %start = and i32 %up, %clear
  %behind = add i32 %start, %size
  %nextat = select i1 %some, i32 %behind, i32 %at
  %more = zext i1 %some to i32
  %nextcount = add i32 %count, %more
  %keep0 = or i1 %iskeep, %islong
  %keep = or i1 %keep0, %isstar
  %percent = icmp eq i8 %c, 37
  %nextinside = select i1 %inside, i1 %keep, i1 %percent
  %long0 = or i1 %long, %islong
  %long1 = and i1 %long0, %inside
  %nextlong = and i1 %long1, %keep
  %nexti = add i64 %i, 1
  br label %head
done:
  store i32 %count, ptr %taken
  %pb = getelementptr i8, ptr %taken, i64 4
  store i32 %at, ptr %pb
  ret i64 0
}}

define i32 @{function}(ptr %launch, ptr %block, ptr %warp, i32 %number, <32 x i64> %formats,
                       <32 x i64> %arguments, i32 %mask, ptr %data) noinline {{
entry:
  %where = alloca [32 x i64], align 64
  store <32 x i64> %formats, ptr %where, align 64
  %what = alloca [32 x i64], align 64
  store <32 x i64> %arguments, ptr %what, align 64
  %taken = alloca [2 x i32], align 8
  %spare = alloca [{abi.PRINT_BYTES} x i8], align 8
  %px = getelementptr i8, ptr %warp, i64 {_at(abi.Warp, "index")}
  %index = load i32, ptr %px
  %pb = getelementptr i8, ptr %block, i64 {_at(abi.Block, "index")}
  %blocknumber = load i64, ptr %pb
  %pr = getelementptr i8, ptr %launch, i64 {_at(abi.Launch, "printf")}
  %ring = load ptr, ptr %pr
  %noring = icmp eq ptr %ring, null
  br label %head
head:
  %left = phi i32 [ %mask, %entry ], [ %rest, %next ]
{NEXT_LANE}  %format = load i64, ptr %p
  %result = getelementptr i32, ptr %data, i64 %lane
  %null = icmp eq i64 %format, 0
  br i1 %null, label %nothing, label %parse
nothing:
  store i32 -1, ptr %result
  br label %next
parse:
  %lost = call i64 @print.format({who}, i64 %format, ptr %taken)
  %islost = icmp ne i64 %lost, 0
  br i1 %islost, label %fault, label %room
room:
  %count = load i32, ptr %taken
  store i32 %count, ptr %result
  %pbytes = getelementptr i8, ptr %taken, i64 4
  %bytes = load i32, ptr %pbytes
  br i1 %noring, label %copy, label %look
look:
  %pu = getelementptr i8, ptr %ring, i64 {_at(ring, "used")}
  %used = load i64, ptr %pu
  %pn = getelementptr i8, ptr %ring, i64 {_at(ring, "capacity")}
  %capacity = load i64, ptr %pn
  %fits = icmp ult i64 %used, %capacity
  br i1 %fits, label %fill, label %copy
fill:
  %prec = load ptr, ptr %ring
  %skip = mul i64 %used, {ctypes.sizeof(record)}
  %record = getelementptr i8, ptr %prec, i64 %skip
  store i64 %format, ptr %record
  %r1 = getelementptr i8, ptr %record, i64 {_at(record, "block")}
  store i64 %blocknumber, ptr %r1
  %first = mul i32 %index, 32
  %thread = add i32 %first, %narrow
  %r2 = getelementptr i8, ptr %record, i64 {_at(record, "thread")}
  store i32 %thread, ptr %r2
  %r3 = getelementptr i8, ptr %record, i64 {_at(record, "bytes")}
  store i32 %bytes, ptr %r3
  %r4 = getelementptr i8, ptr %record, i64 {_at(record, "data")}
  br label %copy
copy:
  %to = phi ptr [ %spare, %room ], [ %spare, %look ], [ %r4, %fill ]
  %pa = getelementptr i64, ptr %what, i64 %lane
  %from = load i64, ptr %pa
  %size = zext i32 %bytes to i64
  br label %each
each:
  %j = phi i64 [ 0, %copy ], [ %nextj, %move ]
  %all = icmp uge i64 %j, %size
  br i1 %all, label %counted, label %find
find:
  %source = add i64 %from, %j
  %host = call ptr @find.generic({who}, i64 %source, i64 1)
  %absent = icmp eq ptr %host, null
  br i1 %absent, label %fault, label %move
move:
  %byte = load i8, ptr %host
  %target = getelementptr i8, ptr %to, i64 %j
  store i8 %byte, ptr %target
  %nextj = add i64 %j, 1
  br label %each
counted:
  br i1 %noring, label %next, label %add
add:
  %pu2 = getelementptr i8, ptr %ring, i64 {_at(ring, "used")}
  %used2 = load i64, ptr %pu2
  %used3 = add i64 %used2, 1
  store i64 %used3, ptr %pu2
  br label %next
next:
  br label %head
fault:
  %address = phi i64 [ %lost, %parse ], [ %source, %find ]
  %pf = getelementptr i8, ptr %launch, i64 {_at(abi.Launch, "fault")}
  %frecord = load ptr, ptr %pf
  store i32 {int(abi.Code.BOUNDS)}, ptr %frecord
  %f1 = getelementptr i8, ptr %frecord, i64 {_at(fault, "instruction")}
  store i32 %number, ptr %f1
  %bit = shl i32 1, %narrow
  %f2 = getelementptr i8, ptr %frecord, i64 {_at(fault, "mask")}
  store i32 %bit, ptr %f2
  %f3 = getelementptr i8, ptr %frecord, i64 {_at(fault, "warp")}
  store i32 %index, ptr %f3
  %f4 = getelementptr i8, ptr %frecord, i64 {_at(fault, "block")}
  store i64 %blocknumber, ptr %f4
  %f5 = getelementptr i8, ptr %frecord, i64 {_at(fault, "addresses")}
  %f6 = getelementptr i64, ptr %f5, i64 %lane
  store i64 %address, ptr %f6
  ret i32 0
done:
  ret i32 1
}}
"""
