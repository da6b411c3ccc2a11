"""Votes, shuffles and the other operations in which lanes meet.

The lanes that a mask names must be here, or have ended: lanes that part meet again behind
their branches (`graph`), so real code finds its lanes. Where one is missing the launch
ends with a fault, because no result would be right.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from bedplate.simt import abi, lanes
from bedplate.simt.emitter import Emitter
from bedplate.simt.lanes import I32, I64
from bedplate.simt.lowering.base import lowers
from bedplate.simt.module import Immediate, Instruction, Register
from bedplate.simt.resolve import first_lane, likely
from bedplate.simt.scalar import FULL, LANES, SCALARS

_B32, _PRED = SCALARS["b32"], SCALARS["pred"]


def _output(made: Instruction, name: str = "d") -> Register | None:
    found = made.operands.get(name)
    assert found is None or isinstance(found, Register)
    return found


def _members(e: Emitter, made: Instruction) -> Any:
    """The mask that each lane names, after the check that all of it is here."""
    operand = made.operands["m"]
    assert operand is not None
    members = e.vector(operand, _B32)
    for tool in e.tools:
        tool.synced(e, made, members)
    active = e.mask
    builder = e.builder
    missing = builder.and_(builder.load(e.live), builder.not_(active))
    if isinstance(operand, Immediate) and operand.bits == FULL:
        good = builder.icmp_unsigned("==", missing, ir.Constant(I32, 0))
    else:
        own = ir.Constant(members.type, [1 << lane for lane in range(LANES)])
        absent = builder.and_(members, lanes.splat(builder, missing))
        outside = builder.and_(builder.not_(members), own)
        odd = builder.icmp_unsigned("!=", builder.or_(absent, outside), lanes.like(members, 0))
        bad = builder.and_(lanes.mask_bits(builder, odd), active)
        good = builder.icmp_unsigned("==", bad, ir.Constant(I32, 0))
    yes = e.function.append_basic_block("together")
    no = e.function.append_basic_block("apart")
    likely(builder, good, yes, no)
    e.builder = ir.IRBuilder(no)
    e.fault(abi.Code.SYNC, made, active, None)
    e.builder = ir.IRBuilder(yes)
    return members


@lowers("activemask")
def active_mask(e: Emitter, made: Instruction) -> None:
    """The lanes that run this instruction together."""
    e.write(_output(made), lanes.splat(e.builder, e.mask))


@lowers("vote")
def vote(e: Emitter, made: Instruction) -> None:
    """Of the lanes that each lane names."""
    members, builder = _members(e, made), e.builder
    said = lanes.mask_bits(builder, e.vector(made.operands["a"], _PRED))  # type: ignore[arg-type]
    here = builder.and_(members, lanes.splat(builder, e.mask))
    yes = builder.and_(here, lanes.splat(builder, said))
    zero, mode = lanes.like(members, 0), made.slots["mode"]
    everyone = builder.icmp_unsigned("==", yes, here)
    nobody = builder.icmp_unsigned("==", yes, zero)
    result = {
        "ballot": lambda: yes,
        "all": lambda: everyone,
        "any": lambda: builder.not_(nobody),
        "uni": lambda: builder.or_(everyone, nobody),
    }[mode]()
    e.write(_output(made), result)


@lowers("shfl")
def shuffle(e: Emitter, made: Instruction) -> None:
    """A fixed shuffle when distance and bounds are constants."""
    _members(e, made)
    builder = e.builder
    a = e.vector(made.operands["a"], _B32)  # type: ignore[arg-type]
    b, c = made.operands["b"], made.operands["c"]
    active = lanes.mask_lanes(builder, e.mask)
    if isinstance(b, Immediate) and isinstance(c, Immediate):
        found = [source_lane(made.slots["mode"], n, b.bits, c.bits) for n in range(LANES)]
        order = [lane for lane, _ in found]
        moved = lanes.shuffled(builder, a, order)
        here = lanes.shuffled(builder, active, order)
        inside: Any = ir.Constant(lanes.MASK, [int(good) for _, good in found])
    else:
        distance, bounds = (e.vector(o, _B32) for o in (b, c))  # type: ignore[arg-type]
        source, inside = _sources(builder, made.slots["mode"], distance, bounds)
        moved = _picked(e, a, source)
        bits = builder.lshr(lanes.splat(builder, e.mask), source)
        here = builder.trunc(bits, lanes.MASK)
    # A lane that is not here gives nothing: its reader keeps its own value.
    e.write(_output(made), builder.select(here, moved, a))
    e.write(_output(made, "p"), inside)


def source_lane(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """The lane that `lane` reads, and whether it is inside of its segment.

    Source: PTX ISA, "shfl.sync".
    """
    distance, clamp, segment = b & 31, c & 31, c >> 8 & 31
    last = (lane & segment) | (clamp & ~segment)
    source = {
        "up": lane - distance,
        "down": lane + distance,
        "bfly": lane ^ distance,
        "idx": (lane & segment) | (distance & ~segment),
    }[mode]
    inside = source >= last if mode == "up" else source <= last
    return (source, True) if inside else (lane, False)


def _sources(builder: ir.IRBuilder, mode: str, b: Any, c: Any) -> tuple[Any, Any]:
    """`source_lane` for operands that are not constants."""
    lane = ir.Constant(b.type, list(range(LANES)))
    low = lanes.like(b, 31)
    distance, clamp = builder.and_(b, low), builder.and_(c, low)
    segment = builder.and_(builder.lshr(c, lanes.like(c, 8)), low)
    first = builder.and_(lane, segment)
    last = builder.or_(first, builder.and_(clamp, builder.not_(segment)))
    source = {
        "up": lambda: builder.sub(lane, distance),
        "down": lambda: builder.add(lane, distance),
        "bfly": lambda: builder.xor(lane, distance),
        "idx": lambda: builder.or_(first, builder.and_(distance, builder.not_(segment))),
    }[mode]()
    inside = builder.icmp_signed(">=" if mode == "up" else "<=", source, last)
    return builder.select(inside, source, lane), inside


def _picked(e: Emitter, value: Any, source: Any) -> Any:
    """`value[source[lane]]`, through memory."""
    builder = e.builder
    builder.store(value, e.scratch, align=64)
    result: Any = ir.Constant(value.type, ir.Undefined)
    for lane in range(LANES):
        index = builder.zext(builder.extract_element(source, ir.Constant(I32, lane)), I64)
        item = builder.load(builder.gep(e.scratch, [index], source_etype=I32), typ=I32)
        result = builder.insert_element(result, item, ir.Constant(I32, lane))
    return result


@lowers("match")
def match(e: Emitter, made: Instruction) -> None:
    """For each lane the named lanes with its value."""
    members, builder = _members(e, made), e.builder
    bits = SCALARS[f"b{made.type.bits}"]
    a = e.vector(made.operands["a"], bits)  # type: ignore[arg-type]
    result: Any = ir.Constant(members.type, ir.Undefined)
    for lane in range(LANES):
        one = builder.extract_element(a, ir.Constant(I32, lane))
        same = builder.icmp_unsigned("==", a, lanes.splat(builder, one))
        found = lanes.mask_bits(builder, same)
        result = builder.insert_element(result, found, ir.Constant(I32, lane))
    here = builder.and_(members, lanes.splat(builder, e.mask))
    e.write(_output(made), builder.and_(result, here))


@lowers("redux")
def reduce(e: Emitter, made: Instruction) -> None:
    """Over the lanes that the lowest lane here names."""
    members, builder = _members(e, made), e.builder
    a, mask = e.vector(made.operands["a"], made.type), e.mask  # type: ignore[arg-type]
    named = builder.extract_element(members, first_lane(builder, mask))
    here = lanes.mask_lanes(builder, builder.and_(named, mask))
    operation, signed = made.slots["op"], made.type.signed
    top, bottom = (1 << 31) - 1, -(1 << 31)
    neutral = {
        "and": -1,
        "min": top if signed else -1,
        "max": bottom if signed else 0,
    }.get(operation, 0)
    if operation in ("min", "max"):
        operation = f"{'s' if signed else 'u'}{operation}"
    value = builder.select(here, a, lanes.like(a, neutral))
    total = lanes.intrinsic(builder, f"vector.reduce.{operation}", [value], result=I32)
    e.write(_output(made), lanes.splat(builder, total))


def warp_barrier(e: Emitter, made: Instruction) -> None:
    """Lanes that run together need no waiting; those that are named must be here."""
    if "warp" in made.slots:
        _members(e, made)
        return
    # Behind a barrier that reduces: the block scheduler has the sum of all warps.
    total = e.field(e.warp, abi.Warp, "result")
    zero = ir.Constant(I32, 0)
    how = {"popc": "", "or": "!=", "and": "=="}[made.slots["op"]]
    result = e.builder.icmp_unsigned(how, total, zero) if how else total
    e.write(_output(made), lanes.splat(e.builder, result))


lowers("bar")(warp_barrier)


@lowers("membar")
def fence(e: Emitter, made: Instruction) -> None:
    """Other host threads see the stores before it first."""
    e.builder.fence("seq_cst")
