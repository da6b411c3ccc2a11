"""The functions that `resolve` calls, in LLVM's assembly: text by name, nothing else.

They walk the active lanes from the lowest, check alignment and bounds exactly, and fill in
the fault record. A name says all: operation, space, bits and count of elements, bytes of
local memory, and for atomics what changes.
"""

from __future__ import annotations

import re
from typing import Any

from bedplate.simt import abi, windows
from bedplate.simt.nans import CANONICAL
from bedplate.simt.scalar import LANES

_NAME = re.compile(r"(load|store|scatter|atomic)\.(\w+)\.(\d+)x(\d+)(?:\.(\d+))?(?:\.(\w+))?")


def text(function: str) -> str:
    """The function of that name, in LLVM's assembly."""
    found = _NAME.fullmatch(function)
    if found is None:
        raise ValueError(f"{function} is not the name of a resolving function")
    operation, space, bits, count, local_bytes, change = found.groups()
    if operation == "scatter":
        return _scatter(function, int(bits), int(count))
    helpers = find(space, int(local_bytes))
    if operation == "atomic":
        helpers += _change(change, int(bits), flush=space != "shared")
    return helpers + _access(function, operation, space, int(bits), int(count))


def _at(structure: Any, name: str) -> int:
    return int(getattr(structure, name).offset)


def find(space: str, local_bytes: int) -> str:
    """`find`: the host's address of bytes of a space, or null."""
    inside = """
define internal ptr @inside(i64 %offset, i64 %size, i64 %bytes, i64 %host) alwaysinline {
  %large = icmp uge i64 %size, %bytes
  %room = sub i64 %size, %bytes
  %fits = icmp ule i64 %offset, %room
  %good = and i1 %large, %fits
  %sum = add i64 %host, %offset
  %address = inttoptr i64 %sum to ptr
  %result = select i1 %good, ptr %address, ptr null
  ret ptr %result
}
"""
    arguments = "ptr %launch, ptr %block, ptr %warp, i64 %lane, i64 %address, i64 %bytes"
    shared = f"""
define internal ptr @find.shared({arguments}) alwaysinline {{
  %ps = getelementptr i8, ptr %launch, i64 {_at(abi.Launch, "shared_bytes")}
  %size = load i64, ptr %ps
  %ph = getelementptr i8, ptr %block, i64 {_at(abi.Block, "shared")}
  %host = load i64, ptr %ph
  %result = call ptr @inside(i64 %address, i64 %size, i64 %bytes, i64 %host)
  ret ptr %result
}}
"""
    local = f"""
define internal ptr @find.local({arguments}) alwaysinline {{
  %ph = getelementptr i8, ptr %warp, i64 {_at(abi.Warp, "local")}
  %first = load i64, ptr %ph
  %skip = mul i64 %lane, {local_bytes}
  %host = add i64 %first, %skip
  %result = call ptr @inside(i64 %address, i64 {local_bytes}, i64 %bytes, i64 %host)
  ret ptr %result
}}
"""
    global_ = f"""{windows.SEARCH}
define internal ptr @find.global({arguments}) {{
  %one = call ptr @window.of(ptr %launch, i64 %address, i64 %bytes)
  %none = icmp eq ptr %one, null
  br i1 %none, label %lost, label %good
good:
  %base = load i64, ptr %one
  %ph = getelementptr i8, ptr %one, i64 {_at(abi.Window, "host")}
  %host = load i64, ptr %ph
  %offset = sub i64 %address, %base
  %sum = add i64 %host, %offset
  %result = inttoptr i64 %sum to ptr
  ret ptr %result
lost:
  ret ptr null
}}
"""
    call = "ptr %launch, ptr %block, ptr %warp, i64 %lane"
    generic = f"""
define internal ptr @find.generic({arguments}) {{
entry:
  %inshared = sub i64 %address, {abi.SHARED_BASE}
  %isshared = icmp ult i64 %inshared, {1 << 32}
  br i1 %isshared, label %shared, label %else
shared:
  %s = call ptr @find.shared({call}, i64 %inshared, i64 %bytes)
  ret ptr %s
else:
  %inlocal = sub i64 %address, {abi.LOCAL_BASE}
  %islocal = icmp ult i64 %inlocal, {1 << 32}
  br i1 %islocal, label %local, label %global
local:
  %l = call ptr @find.local({call}, i64 %inlocal, i64 %bytes)
  ret ptr %l
global:
  %g = call ptr @find.global({call}, i64 %address, i64 %bytes)
  ret ptr %g
}}
"""
    if space == "generic":
        return inside + shared + local + global_ + generic
    return inside + {"shared": shared, "local": local}.get(space, global_)


NEXT_LANE = """  %none = icmp eq i32 %left, 0
  br i1 %none, label %done, label %turn
turn:
  %narrow = call i32 @llvm.cttz.i32(i32 %left, i1 false)
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  %lane = zext i32 %narrow to i64
  %p = getelementptr i64, ptr %where, i64 %lane
"""
"""The lowest lane of `%left`: its number, its place in `%where`, and who is left behind it."""


def _access(name: str, operation: str, space: str, bits: int, count: int) -> str:
    bytes_ = bits // 8 * count
    space = space if space in ("shared", "local", "generic") else "global"
    record = abi.FaultRecord
    moves = _moves(operation, bits, count, "%host")
    halves, start = "  br label %head", "[ %mask, %entry ]"
    if count == 1 and space == "global" and operation != "atomic":
        halves = _halves(operation, bits)
        start = "[ %mask, %halves ], [ %mask, %ranged ]"
    return f"""
declare i32 @llvm.cttz.i32(i32, i1)
define i32 @{name}(ptr %launch, ptr %block, ptr %warp, i32 %number, <32 x i64> %addresses,
                   i32 %mask, ptr %data) noinline {{
entry:
  %where = alloca [32 x i64], align 64
  store <32 x i64> %addresses, ptr %where, align 64
{halves}
head:
  %left = phi i32 {start}, [ %rest, %found ]
{NEXT_LANE}  %address = load i64, ptr %p
  %rest0 = and i64 %address, {bytes_ - 1}
  %aligned = icmp eq i64 %rest0, 0
  br i1 %aligned, label %find, label %fault
find:
  %host = call ptr @find.{space}(ptr %launch, ptr %block, ptr %warp, i64 %lane, i64 %address,
                                 i64 {bytes_})
  %lost = icmp eq ptr %host, null
  br i1 %lost, label %fault, label %found
found:
{moves}
  br label %head
fault:
  %code = phi i32 [ {int(abi.Code.MISALIGNED)}, %turn ], [ {int(abi.Code.BOUNDS)}, %find ]
  %pr = getelementptr i8, ptr %launch, i64 {_at(abi.Launch, "fault")}
  %record = load ptr, ptr %pr
  store i32 %code, ptr %record
  %f1 = getelementptr i8, ptr %record, i64 {_at(record, "instruction")}
  store i32 %number, ptr %f1
  %bit = shl i32 1, %narrow
  %f2 = getelementptr i8, ptr %record, i64 {_at(record, "mask")}
  store i32 %bit, ptr %f2
  %pi = getelementptr i8, ptr %warp, i64 {_at(abi.Warp, "index")}
  %index = load i32, ptr %pi
  %f3 = getelementptr i8, ptr %record, i64 {_at(record, "warp")}
  store i32 %index, ptr %f3
  %pb = getelementptr i8, ptr %block, i64 {_at(abi.Block, "index")}
  %blocknumber = load i64, ptr %pb
  %f4 = getelementptr i8, ptr %record, i64 {_at(record, "block")}
  store i64 %blocknumber, ptr %f4
  %f5 = getelementptr i8, ptr %record, i64 {_at(record, "addresses")}
  store <32 x i64> %addresses, ptr %f5, align 8
  ret i32 0
done:
  ret i32 1
}}
"""


def _halves(operation: str, bits: int) -> str:
    """A full warp whose half-warps are contiguous, in the first window: rows of a tile.

    Two moves serve it; anything else goes on to look at each lane.
    """
    size = bits // 8
    steps = ", ".join(f"i64 {lane % 16 * size}" for lane in range(LANES))
    order = ", ".join(f"i32 {lane // 16 * 16}" for lane in range(LANES))
    kind = f"<16 x i{bits}>"
    source, target = ("host", "data") if operation == "load" else ("data", "host")
    window = abi.Window
    return f"""  br label %halves
halves:
  %firsts = shufflevector <32 x i64> %addresses, <32 x i64> poison, <32 x i32> <{order}>
  %steps = sub <32 x i64> %addresses, %firsts
  %alike = icmp eq <32 x i64> %steps, <{steps}>
  %bits = bitcast <32 x i1> %alike to i32
  %both = and i32 %bits, %mask
  %regular = icmp eq i32 %both, -1
  br i1 %regular, label %ranged, label %head
ranged:
  %hpw = getelementptr i8, ptr %launch, i64 {_at(abi.Launch, "windows")}
  %hwindows = load ptr, ptr %hpw
  %hbase = load i64, ptr %hwindows
  %hps = getelementptr i8, ptr %hwindows, i64 {_at(window, "size")}
  %hsize = load i64, ptr %hps
  %hph = getelementptr i8, ptr %hwindows, i64 {_at(window, "host")}
  %hhost = load i64, ptr %hph
  %low = extractelement <32 x i64> %addresses, i32 0
  %high = extractelement <32 x i64> %addresses, i32 16
  %lowoffset = sub i64 %low, %hbase
  %highoffset = sub i64 %high, %hbase
  %lowhost = call ptr @inside(i64 %lowoffset, i64 %hsize, i64 {16 * size}, i64 %hhost)
  %highhost = call ptr @inside(i64 %highoffset, i64 %hsize, i64 {16 * size}, i64 %hhost)
  %lowlost = icmp eq ptr %lowhost, null
  %highlost = icmp eq ptr %highhost, null
  %either = or i64 %low, %high
  %odd = and i64 %either, {size - 1}
  %isodd = icmp ne i64 %odd, 0
  %anylost = or i1 %lowlost, %highlost
  %bad = or i1 %anylost, %isodd
  br i1 %bad, label %head, label %quick
quick:
  %lowdata = getelementptr i8, ptr %data, i64 0
  %highdata = getelementptr i8, ptr %data, i64 {16 * size}
  %lowvalue = load {kind}, ptr %low{source}, align {size}
  store {kind} %lowvalue, ptr %low{target}, align {size}
  %highvalue = load {kind}, ptr %high{source}, align {size}
  store {kind} %highvalue, ptr %high{target}, align {size}
  ret i32 1"""


def _moves(operation: str, bits: int, count: int, host: str) -> str:
    """Copy each element between the host and the lane's place in the buffer."""
    if operation == "atomic":
        return f"""  %buffer0 = getelementptr i{bits}, ptr %data, i64 %lane
  %value0 = load i{bits}, ptr %buffer0
  %buffer1 = getelementptr i{bits}, ptr %buffer0, i64 {LANES}
  %value1 = load i{bits}, ptr %buffer1
  %old = call i{bits} @change(ptr {host}, i{bits} %value0, i{bits} %value1)
  %buffer2 = getelementptr i{bits}, ptr %buffer0, i64 {2 * LANES}
  store i{bits} %old, ptr %buffer2"""
    lines = []
    for n in range(count):
        lines += [
            f"  %place{n} = add i64 %lane, {n * LANES}",
            f"  %buffer{n} = getelementptr i{bits}, ptr %data, i64 %place{n}",
            f"  %memory{n} = getelementptr i{bits}, ptr {host}, i64 {n}",
        ]
        source, target = ("memory", "buffer") if operation == "load" else ("buffer", "memory")
        lines += [
            f"  %value{n} = load i{bits}, ptr %{source}{n}",
            f"  store i{bits} %value{n}, ptr %{target}{n}",
        ]
    return "\n".join(lines)


_CHANGES = {
    "exchb": "xchg",
    "addu": "add",
    "adds": "add",
    "mins": "min",
    "minu": "umin",
    "maxs": "max",
    "maxu": "umax",
    "incu": "uinc_wrap",
    "decu": "udec_wrap",
    "andb": "and",
    "orb": "or",
    "xorb": "xor",
}
"""Operation and kind of type to LLVM's atomicrmw."""


def _change(operation: str, bits: int, *, flush: bool) -> str:
    """`change(host, b, c)`: one atomic operation of the processor, giving the old value."""
    word = f"i{bits}"
    head = f"define internal {word} @change(ptr %host, {word} %b, {word} %c) {{\n"
    plain = operation.rstrip("0123456789")
    if plain in _CHANGES:
        return f"""{head}  %old = atomicrmw {_CHANGES[plain]} ptr %host, {word} %b monotonic
  ret {word} %old
}}
"""
    if plain == "casb":
        return f"""{head}  %pair = cmpxchg ptr %host, {word} %b, {word} %c monotonic monotonic
  %old = extractvalue {{ {word}, i1 }} %pair, 0
  ret {word} %old
}}
"""
    of = "float" if bits == 32 else "double"
    flushes = flush and bits == 32
    exponent, sign = (0x7F800000, -0x80000000) if flushes else (0, 0)
    steps = []
    for name in ("old", "b", "s"):
        source = "%sum" if name == "s" else f"%{name}"
        if flushes:
            steps.append(f"""  %e{name} = and i32 {source}, {exponent}
  %z{name} = icmp eq i32 %e{name}, 0
  %k{name} = and i32 {source}, {sign}
  %f{name} = select i1 %z{name}, i32 %k{name}, i32 {source}""")
        else:
            steps.append(f"  %f{name} = or {word} {source}, 0")
    canonical = CANONICAL[bits] if bits == 32 else CANONICAL[bits] - (1 << 64)
    return f"""{head}entry:
  %first = load atomic {word}, ptr %host monotonic, align {bits // 8}
  br label %again
again:
  %old = phi {word} [ %first, %entry ], [ %seen, %again ]
{steps[0]}
{steps[1]}
  %x = bitcast {word} %fold to {of}
  %y = bitcast {word} %fb to {of}
  %total = fadd {of} %x, %y
  %sum = bitcast {of} %total to {word}
{steps[2]}
  %nan = fcmp uno {of} %total, %total
  %new = select i1 %nan, {word} {canonical}, {word} %fs
  %pair = cmpxchg ptr %host, {word} %old, {word} %new monotonic monotonic
  %seen = extractvalue {{ {word}, i1 }} %pair, 0
  %done = extractvalue {{ {word}, i1 }} %pair, 1
  br i1 %done, label %out, label %again
out:
  ret {word} %old
}}
"""


def _scatter(name: str, bits: int, count: int) -> str:
    return f"""
declare i32 @llvm.cttz.i32(i32, i1)
define void @{name}(<32 x i64> %addresses, i32 %mask, ptr %data) noinline {{
entry:
  %where = alloca [32 x i64], align 64
  store <32 x i64> %addresses, ptr %where, align 64
  br label %head
head:
  %left = phi i32 [ %mask, %entry ], [ %rest, %turn ]
{NEXT_LANE}  %number = load i64, ptr %p
  %host = inttoptr i64 %number to ptr
{_moves("store", bits, count, "%host")}
  br label %head
done:
  ret void
}}
"""
