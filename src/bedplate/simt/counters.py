"""The compiled counters of a profile.

Each counter is a place of `Launch.counters`; a thread of the host has its own array. Only
what cannot be derived is counted: an access without a guard has as many requests as its
block has runs, lanes that all read one address touch one sector, and a pattern without
bank conflicts has none in any part of a warp. What remains of a known pattern is a table
by the alignment of its base; only unknown addresses, and warps of which some lanes are
off, are looked at one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from bedplate.simt import abi, banks, coalescing, lanes
from bedplate.simt.counts import Count
from bedplate.simt.emitter import Emitter
from bedplate.simt.graph import Block, Graph
from bedplate.simt.lanes import I8, I32, I64
from bedplate.simt.module import Instruction
from bedplate.simt.scalar import FULL
from bedplate.simt.tool import Tool, Where

_SECTOR_SHIFT = coalescing.SECTOR_BYTES.bit_length() - 1


class CountingTool(Tool):
    """Counts into `Launch.counters`; one object for one compilation."""

    key = "profile"

    def __init__(self) -> None:
        self.places: dict[tuple[str, int], int] = {}
        self.accesses: dict[int, dict[str, int]] = {}
        self._base: Any = None
        self._tables = 0

    # What the compiler calls.

    def entered(self, emitter: Emitter, block: Block) -> None:
        """One more run of the block, and the lanes in it."""
        if block.all:
            self._add(emitter, "issues", block.index, ir.Constant(I64, 1))
            self._add(emitter, "lanes", block.index, _ones(emitter, emitter.block_mask))

    def branched(self, emitter: Emitter, made: Instruction, taken: Any) -> None:
        """Divergent when some lanes go and some stay."""
        builder = emitter.builder
        some = builder.icmp_unsigned("!=", taken, ir.Constant(I32, 0))
        not_all = builder.icmp_unsigned("!=", taken, emitter.block_mask)
        self._add(emitter, "divergent", made.number, builder.and_(some, not_all))

    def accessed(
        self,
        emitter: Emitter,
        made: Instruction,
        space: str,
        where: Where,
        bytes: int,
        values: Sequence[Any] = (),
    ) -> None:
        """Requests, sectors and wavefronts, where they are not derived."""
        number, mask = made.number, emitter.mask
        self.accesses.setdefault(number, {})[space] = bytes
        if space == "generic":
            self._generic(emitter, number, where.every(), mask, bytes)
            return
        if space not in ("global", "shared"):
            return
        prefix = "shared_" if space == "shared" else ""
        if emitter.guard is not None:
            self._requests(emitter, number, mask, prefix)
        if space == "global":
            self._sectors(emitter, number, where, mask)
        elif space == "shared":
            self._wavefronts(emitter, number, where, mask, bytes)

    # Adding.

    def _add(self, emitter: Emitter, kind: str, number: int, value: Any) -> None:
        if self._base is None:
            kept, emitter.builder = emitter.builder, emitter.entry
            self._base = emitter.field(emitter.launch, abi.Launch, "counters")
            emitter.builder = kept
        place = self.places.setdefault((kind, number), len(self.places))
        builder = emitter.builder
        where = builder.gep(self._base, [ir.Constant(I64, 8 * place)], source_etype=I8)
        more = lanes.resized(builder, value, 64)
        builder.store(builder.add(builder.load(where, typ=I64), more), where)

    def _requests(self, emitter: Emitter, number: int, mask: Any, prefix: str) -> None:
        some = emitter.builder.icmp_unsigned("!=", mask, ir.Constant(I32, 0))
        self._add(emitter, prefix + "requests", number, some)
        self._add(emitter, prefix + "active", number, _ones(emitter, mask))

    def _sectors(self, emitter: Emitter, number: int, where: Where, mask: Any) -> None:
        if where.base is not None and where.exact is None and not any(where.values):
            return  # as many as requests
        table: Sequence[int] = ()
        if where.base is not None:
            table = coalescing.by_alignment(where.values)

        def slowly() -> Any:
            return _distinct(emitter, where.every(), mask)

        value = self._by_pattern(emitter, where, mask, table, slowly)
        self._add(emitter, "sectors", number, value)

    def _wavefronts(
        self, emitter: Emitter, number: int, where: Where, mask: Any, bytes: int
    ) -> None:
        table: Sequence[int] = ()
        if where.base is not None:
            table = banks.by_alignment(where.values, bytes)
            if max(table) == banks.least(bytes) and where.exact is None:
                return  # no conflicts, then nor in a part of the warp

        def slowly() -> Any:
            return _busiest(emitter, where.every(), mask, bytes)

        value = self._by_pattern(emitter, where, mask, table, slowly)
        self._add(emitter, "wavefronts", number, value)

    def _by_pattern(
        self,
        emitter: Emitter,
        where: Where,
        mask: Any,
        table: Sequence[int],
        slowly: Callable[[], Any],
    ) -> Any:
        """An entry of the table when all lanes run and the pattern holds."""
        if not table:
            return slowly()
        builder = emitter.builder
        good = builder.icmp_unsigned("==", mask, ir.Constant(I32, FULL))
        if where.exact is not None:
            good = builder.and_(good, where.exact)
        quick, slow, after = (
            emitter.function.append_basic_block(name) for name in ("listed", "looked", "counted")
        )
        builder.cbranch(good, quick, slow)
        emitter.builder = builder = ir.IRBuilder(quick)
        first = self._entry(emitter, where.base, table)
        builder.branch(after)
        emitter.builder = ir.IRBuilder(slow)
        second = slowly()
        slow_end = emitter.builder.block
        emitter.builder.branch(after)
        emitter.builder = builder = ir.IRBuilder(after)
        value = builder.phi(I32)
        value.add_incoming(first, quick)
        value.add_incoming(second, slow_end)
        return value

    def _entry(self, emitter: Emitter, base: Any, table: Sequence[int]) -> Any:
        if len(set(table)) == 1:
            return ir.Constant(I32, table[0])
        kind = ir.ArrayType(I8, len(table))
        self._tables += 1
        made = ir.GlobalVariable(emitter.module, kind, f"counted.{self._tables}")
        made.global_constant, made.linkage = True, "internal"
        made.initializer = ir.Constant(kind, list(table))
        builder = emitter.builder
        index = builder.and_(base, ir.Constant(I64, len(table) - 1))
        place = builder.gep(made, [ir.Constant(I64, 0), index])
        return builder.zext(builder.load(place, typ=I8), I32)

    def _generic(
        self, emitter: Emitter, number: int, addresses: Any, mask: Any, bytes: int
    ) -> None:
        """Each lane by the space that its address is in."""
        builder = emitter.builder
        shared, local = (
            builder.and_(mask, _window(builder, addresses, base))
            for base in (abi.SHARED_BASE, abi.LOCAL_BASE)
        )
        far = builder.and_(mask, builder.not_(builder.or_(shared, local)))
        self._requests(emitter, number, far, "")
        self._requests(emitter, number, shared, "shared_")
        self._add(emitter, "sectors", number, _distinct(emitter, addresses, far))
        offsets = builder.sub(addresses, lanes.like(addresses, abi.SHARED_BASE))
        self._add(emitter, "wavefronts", number, _busiest(emitter, offsets, shared, bytes))

    # What was counted.

    def counts(self, graph: Graph, values: Sequence[int]) -> dict[int, Count]:
        """The counts of every instruction that ran, with what was derived."""
        found: dict[int, Count] = {}
        for block in graph.blocks:
            if not block.all or not values[self.places["issues", block.index]]:
                continue
            for made in block.all:
                count = Count(
                    values[self.places["issues", block.index]],
                    values[self.places["lanes", block.index]],
                    self._value("divergent", made.number, values, 0),
                )
                if made.number in self.accesses:
                    self._settle(made.number, count, values)
                found[made.number] = count
        return found

    def _settle(self, number: int, count: Count, values: Sequence[int]) -> None:
        for space, bytes in self.accesses[number].items():
            self._settle_space(number, count, values, space, bytes)

    def _settle_space(
        self, number: int, count: Count, values: Sequence[int], space: str, bytes: int
    ) -> None:
        if space in ("global", "generic"):
            count.requests = self._value("requests", number, values, count.issues)
            count.active = self._value("active", number, values, count.lanes)
            count.sectors = self._value("sectors", number, values, count.requests)
        if space in ("shared", "generic"):
            count.shared_requests = self._value("shared_requests", number, values, count.issues)
            count.shared_active = self._value("shared_active", number, values, count.lanes)
            least = banks.least(bytes) * count.shared_requests
            count.wavefronts = self._value("wavefronts", number, values, least)
        count.settle(bytes)

    def _value(self, kind: str, number: int, values: Sequence[int], other: int) -> int:
        place = self.places.get((kind, number))
        return other if place is None else values[place]


def _ones(emitter: Emitter, mask: Any) -> Any:
    return lanes.intrinsic(emitter.builder, "ctpop", [mask])


def _window(builder: ir.IRBuilder, addresses: Any, base: int) -> Any:
    """The lanes whose addresses are in the 4 GiB from `base`, as a mask."""
    offset = builder.sub(addresses, lanes.like(addresses, base))
    inside = builder.icmp_unsigned("<", offset, lanes.like(offset, 1 << 32))
    return lanes.mask_bits(builder, inside)


def _distinct(emitter: Emitter, addresses: Any, mask: Any) -> Any:
    builder = emitter.builder
    units = builder.lshr(addresses, lanes.like(addresses, _SECTOR_SHIFT))
    arguments = [units, mask]
    function = lanes.declared(emitter.module, "count.distinct", I32, arguments)
    return builder.call(function, arguments)


def _busiest(emitter: Emitter, addresses: Any, mask: Any, bytes: int) -> Any:
    builder = emitter.builder
    width = max(bytes, banks.BANK_BYTES)
    units = builder.lshr(addresses, lanes.like(addresses, width.bit_length() - 1))
    groups = banks.BANKS * banks.BANK_BYTES // width
    # An aligned access of 8 bytes fills a pair of banks, one of 16 four of them.
    arguments = [units, mask, ir.Constant(I64, groups - 1), ir.Constant(I32, banks.least(bytes))]
    function = lanes.declared(emitter.module, "count.busiest", I32, arguments)
    return builder.call(function, arguments)


def text(function: str) -> str:
    """The function of that name, in LLVM's assembly.

    `count.distinct(units, mask)`: the different units of the active lanes;
    `count.busiest(units, mask, groups, least)`: the most different units that one group has.
    """
    if not re.fullmatch(r"count\.(distinct|busiest)", function):
        raise ValueError(f"{function} is not the name of a counting function")
    busiest = function == "count.busiest"
    arguments = ", i64 %groups, i32 %least" if busiest else ""
    each = "  %more = add i32 %count, 1\n"
    result = "  ret i32 %count\n"
    room = ""
    if busiest:
        room = """  %busy = alloca [32 x i8], align 32
  store <32 x i8> zeroinitializer, ptr %busy, align 32
"""
        each = """  %group = and i64 %unit, %groups
  %pg = getelementptr i8, ptr %busy, i64 %group
  %old = load i8, ptr %pg
  %new = add i8 %old, 1
  store i8 %new, ptr %pg
  %wide = zext i8 %new to i32
  %larger = icmp ugt i32 %wide, %count
  %more = select i1 %larger, i32 %wide, i32 %count
"""
        result = """  %few = icmp ult i32 %count, %least
  %enough = select i1 %few, i32 %least, i32 %count
  %none.at.all = icmp eq i32 %mask, 0
  %result = select i1 %none.at.all, i32 0, i32 %enough
  ret i32 %result
"""
    return f"""
declare i32 @llvm.cttz.i32(i32, i1)
define i32 @{function}(<32 x i64> %units, i32 %mask{arguments}) noinline {{
entry:
  %where = alloca [32 x i64], align 64
  store <32 x i64> %units, ptr %where, align 64
{room}  br label %head
head:
  %left = phi i32 [ %mask, %entry ], [ %rest, %turn ]
  %count = phi i32 [ 0, %entry ], [ %more, %turn ]
  %none = icmp eq i32 %left, 0
  br i1 %none, label %done, label %turn
turn:
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %p = getelementptr i64, ptr %where, i32 %lane
  %unit = load i64, ptr %p
  %one = insertelement <32 x i64> undef, i64 %unit, i32 0
  %all = shufflevector <32 x i64> %one, <32 x i64> undef, <32 x i32> zeroinitializer
  %equal = icmp eq <32 x i64> %units, %all
  %bits = bitcast <32 x i1> %equal to i32
  %others = xor i32 %bits, -1
  %rest = and i32 %left, %others
{each}  br label %head
done:
{result}}}
"""
