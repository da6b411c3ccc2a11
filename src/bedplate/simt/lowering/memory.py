"""Loads and stores.

The addresses of most accesses have a shape (`uniformity`): a scalar and a pattern. Then
one range check serves the warp, one load or store moves it, and what the pattern asks for
is a fixed shuffle. All else, and every access that fails the quick check, goes through
one function of the module that looks at each lane: it finds the window, and the fault.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from bedplate.simt import abi, lanes, resolve
from bedplate.simt.emitter import Emitter
from bedplate.simt.lanes import I1, I8, I32, I64, PTR
from bedplate.simt.lowering.base import lowers
from bedplate.simt.module import (
    Address,
    Instruction,
    Register,
    Value,
    VariableAddress,
    Vector,
)
from bedplate.simt.scalar import FULL, LANES
from bedplate.simt.uniformity import Extended, Pattern

_LARGEST_GATHERED = 4
"""Different places that are loaded one by one rather than gathered; more are not faster."""


@dataclass(frozen=True)
class Access:
    """One access of a warp: `count` elements of `bits` a lane."""

    made: Instruction
    space: str
    bits: int
    count: int

    @property
    def bytes(self) -> int:
        """Bytes a lane."""
        return self.bits // 8 * self.count


@lowers("ld")
def load(e: Emitter, made: Instruction) -> None:
    """Every space; a result that is the same for all lanes is loaded once."""
    access = _access(made)
    outputs = _elements(made.operands["d"])
    address = made.operands["m"]
    assert isinstance(address, Address)
    if access.space == "param":
        _load_parameter(e, access, address, outputs)
        return
    scalar = [r for r in outputs if r is not None and e.slots[r.index].shape is not None]
    values = _load(e, access, address, scalar=bool(scalar))
    for register, value in zip(outputs, values, strict=True):
        if register is not None:
            e.write(register, _extended(e, made, register, value))


@lowers("st")
def store(e: Emitter, made: Instruction) -> None:
    """Where lanes name one place, the highest lane's value stays."""
    access = _access(made)
    address = made.operands["m"]
    assert isinstance(address, Address)
    kind = made.type
    sources = _elements(made.operands["a"])
    values = [lanes.cast(e.builder, e.vector(s, kind), lanes.integer(kind.bits)) for s in sources]
    store_access(e, made, access.space, access.bits, address, values)


def load_access(
    e: Emitter, made: Instruction, space: str, bits: int, count: int, address: Address
) -> list[Any]:
    """Elements of `bits` of all active lanes, for operations that are no plain loads."""
    return _load(e, Access(made, space, bits, count), address, scalar=False)


def store_access(
    e: Emitter, made: Instruction, space: str, bits: int, address: Address, values: Sequence[Any]
) -> None:
    """Store elements of the active lanes."""
    access = Access(made, space, bits, len(values))
    place = _place(e, access, address)
    mask = e.mask
    _either(
        e,
        place,
        access,
        mask,
        lambda host: _store_shaped(e, access, place.hosts, host, values, mask),
        lambda: _store_slowly(e, access, place, values, mask),
        (),
        values,
    )


def _access(made: Instruction) -> Access:
    count = int(made.slots["vec"][1]) if "vec" in made.slots else 1
    return Access(made, made.slots.get("space", "generic"), made.type.bits, count)


def _elements(operand: Any) -> list[Any]:
    return list(operand.elements) if isinstance(operand, Vector) else [operand]


def _extended(e: Emitter, made: Instruction, register: Register, value: Any) -> Any:
    """A register wider than what is loaded gets it extended by its sign."""
    if register.type.bits > made.type.bits:
        return lanes.resized(e.builder, value, register.type.bits, signed=made.type.signed)
    return value


def _load_parameter(
    e: Emitter, access: Access, address: Address, outputs: Sequence[Register | None]
) -> None:
    builder = e.builder
    assert isinstance(address.base, VariableAddress), "the parser takes only names here"
    offset = e.parameter_offsets[address.base.variable.name] + address.offset
    base = e.field(e.launch, abi.Launch, "parameters")
    for number, register in enumerate(outputs):
        at = ir.Constant(I64, offset + number * access.bits // 8)
        value = builder.load(
            builder.gep(base, [at], source_etype=I8), typ=lanes.integer(access.bits), align=1
        )
        if register is not None:
            e.write(register, _extended(e, access.made, register, value))


# Where: a scalar address and a pattern, or addresses of all lanes.


@dataclass(frozen=True)
class Place:
    """`base + values[lane]` when `exact` holds; `every()` gives all lanes, always exact.

    `hosts` are the places from the base in the host's memory, where lanes' local memories
    lie one behind the other.
    """

    base: Any | None
    values: tuple[int, ...]
    hosts: tuple[int, ...]
    exact: Any | None
    every: Callable[[], Any]
    window: tuple[Any, Any, Any]


def _width(address: Address) -> int:
    """Bits of an address in registers; names and numbers have 64."""
    return 32 if isinstance(address.base, Register) and address.base.type.bits == 32 else 64


def address_lanes(e: Emitter, address: Address) -> Any:
    """The address of every lane as 64 bits; 32-bit registers wrap at their width."""
    bits = _width(address)
    value = e.vector(address.base, resolve.ADDRESS[bits])
    value = e.builder.add(value, lanes.like(value, address.offset % (1 << bits)))
    return lanes.resized(e.builder, value, 64)


def _place(e: Emitter, access: Access, address: Address) -> Place:
    builder, shape = e.builder, e.shape(address)
    window = resolve.window(e, access.space)
    bits = _width(address)
    kind = resolve.ADDRESS[bits]

    def every() -> Any:
        return address_lanes(e, address)

    if shape is None:
        return Place(None, (), (), None, every, window)
    operand: Value = address.base
    base = e.base(operand, kind)
    exact = None
    if isinstance(shape, Extended):
        assert isinstance(operand, Register)
        slot = e.slots[operand.index]
        index = builder.load(slot.second)
        exact = _no_wrap(e, shape, index)
        wide = lanes.resized(builder, index, 64, signed=shape.signed)
        scale = ir.Constant(I64, shape.scale % (1 << 64))
        base = builder.add(base, builder.mul(wide, scale))
        values = tuple(shape.scale * value for value in shape.values)
    else:
        assert isinstance(shape, Pattern)
        values = shape.values
    base = builder.add(base, ir.Constant(base.type, address.offset % (1 << bits)))
    stride = e.local_bytes if access.space == "local" else 0
    hosts = tuple(value + stride * lane for lane, value in enumerate(values))
    return Place(lanes.resized(builder, base, 64), values, hosts, exact, every, window)


def _no_wrap(e: Emitter, shape: Extended, index: Any) -> Any:
    """Whether no lane's 32-bit index wraps, so that extending keeps the pattern."""
    builder, low, high = e.builder, min(shape.values), max(shape.values)
    bottom, top = (-(1 << 31), (1 << 31) - 1) if shape.signed else (0, (1 << 32) - 1)
    compare = builder.icmp_signed if shape.signed else builder.icmp_unsigned
    result = compare("<=", index, ir.Constant(I32, top - high))
    if low < 0:
        result = builder.and_(result, compare(">=", index, ir.Constant(I32, bottom - low)))
    return result


def _either(
    e: Emitter,
    place: Place,
    access: Access,
    mask: Any,
    quick: Callable[[Any], Sequence[Any]],
    slow: Callable[[], Sequence[Any]],
    kinds: Sequence[ir.Type],
    stored: Sequence[Any] = (),
) -> list[Any]:
    """The quick way when the whole warp is in range and aligned, else the slow one."""
    for tool in e.tools:
        tool.accessed(e, access.made, access.space, place, access.bytes, stored)
    if place.base is None or any(value % access.bytes for value in place.values):
        return list(slow())
    yes = e.function.append_basic_block("quick")
    no = e.function.append_basic_block("slow")
    after = e.function.append_basic_block("done")
    low = min(place.values)
    remembered = e.sited and access.space not in ("shared", "local")
    start = (_remembered if remembered else _ranged)(e, place, access, yes, no)
    first = list(quick(e.builder.gep(start, [ir.Constant(I64, -low)], source_etype=I8)))
    first_end = e.builder.block
    e.builder.branch(after)
    e.builder = ir.IRBuilder(no)
    second = list(slow())
    second_end = e.builder.block
    e.builder.branch(after)
    e.builder = ir.IRBuilder(after)
    results = []
    for kind, one, other in zip(kinds, first, second, strict=False):
        phi = e.builder.phi(kind)
        phi.add_incoming(one, first_end)
        phi.add_incoming(other, second_end)
        results.append(phi)
    return results


def _regular(e: Emitter, place: Place, access: Access) -> Any:
    """Whether the pattern holds and lanes are aligned."""
    builder = e.builder
    aligned = builder.and_(place.base, ir.Constant(I64, access.bytes - 1))
    good = builder.icmp_unsigned("==", aligned, ir.Constant(I64, 0))
    return good if place.exact is None else builder.and_(good, place.exact)


def _fits(builder: ir.IRBuilder, offset: Any, size: Any, span: int) -> Any:
    """Whether `span` bytes from `offset` are within `size`."""
    room = builder.sub(size, ir.Constant(I64, span))
    return builder.and_(
        builder.icmp_unsigned("<=", offset, room),
        builder.icmp_unsigned(">=", size, ir.Constant(I64, span)),
    )


def _span(place: Place, access: Access) -> int:
    return max(place.values) - min(place.values) + access.bytes


def _ranged(e: Emitter, place: Place, access: Access, yes: Any, no: Any) -> Any:
    """Go to `yes` when all is in the first window; where its lowest byte lies, there."""
    builder = e.builder
    base, size, host = place.window
    low = ir.Constant(I64, min(place.values) % (1 << 64))
    offset = builder.add(builder.sub(place.base, base), low)
    good = builder.and_(
        _fits(builder, offset, size, _span(place, access)), _regular(e, place, access)
    )
    resolve.likely(builder, good, yes, no)
    builder = e.builder = ir.IRBuilder(yes)
    return builder.inttoptr(builder.add(host, offset), PTR)


def _remembered(e: Emitter, place: Place, access: Access, yes: Any, no: Any) -> Any:
    """The same over many windows: where this access was before, else a search."""
    builder, span = e.builder, _span(place, access)
    site = builder.gep(
        e.field(e.launch, abi.Launch, "sites"),
        [ir.Constant(I64, e.accesses % abi.SITES * ctypes.sizeof(abi.Window))],
        source_etype=I8,
    )
    e.accesses += 1
    start = builder.add(place.base, ir.Constant(I64, min(place.values) % (1 << 64)))
    good = _regular(e, place, access)
    offset = builder.sub(start, e.field(site, abi.Window, "base"))
    known = _fits(builder, offset, e.field(site, abi.Window, "size"), span)
    search = e.function.append_basic_block("search")
    resolve.likely(builder, builder.and_(good, known), yes, search)
    builder = ir.IRBuilder(search)
    arguments = [e.launch, site, start, ir.Constant(I64, span)]
    found = builder.call(lanes.declared(e.module, "find.site", I1, arguments), arguments)
    resolve.likely(builder, builder.and_(good, found), yes, no)
    builder = e.builder = ir.IRBuilder(yes)
    host = builder.ptrtoint(e.field(site, abi.Window, "host"), I64)
    offset = builder.sub(start, e.field(site, abi.Window, "base"))
    return builder.inttoptr(builder.add(host, offset), PTR)


# Loads.


def _load(e: Emitter, access: Access, address: Address, *, scalar: bool) -> list[Any]:
    place = _place(e, access, address)
    mask = e.mask
    one = lanes.integer(access.bits)
    kind = one if scalar else lanes.vector(one)

    def slow() -> list[Any]:
        values = resolve.load(e, access, place.every(), mask)
        if not scalar:
            return values
        builder = e.builder
        lane = resolve.first_lane(builder, mask)
        return [builder.extract_element(value, lane) for value in values]

    def quick(host: Any) -> list[Any]:
        if scalar:
            return _load_once(e, access, host)
        return _load_shaped(e, access, place.hosts, host)

    return _either(e, place, access, mask, quick, slow, [kind] * access.count)


def _load_once(e: Emitter, access: Access, host: Any) -> list[Any]:
    values = []
    for number in range(access.count):
        at = e.builder.gep(host, [ir.Constant(I64, number * access.bits // 8)], source_etype=I8)
        values.append(e.builder.load(at, typ=lanes.integer(access.bits)))
    return values


def _load_shaped(e: Emitter, access: Access, values: Sequence[int], host: Any) -> list[Any]:
    """All lanes of every element, from `host + values[lane]`."""
    builder, one = e.builder, lanes.integer(access.bits)
    places = sorted(set(values))
    runs = _runs(places, access.bytes)
    if len(runs) > _LARGEST_GATHERED:
        return _gather(e, access, values, host)
    order = {place: number for number, place in enumerate(places)}
    loaded = []
    for start, length in runs:
        kind = ir.VectorType(one, length * access.count)
        at = builder.gep(host, [ir.Constant(I64, start)], source_etype=I8)
        loaded.append(builder.load(at, typ=kind, align=access.bits // 8))
    whole = _joined(builder, loaded)
    return [
        lanes.shuffled(builder, whole, [order[v] * access.count + number for v in values])
        for number in range(access.count)
    ]


def _runs(places: Sequence[int], step: int) -> list[tuple[int, int]]:
    """Neighbouring places as (start, how many)."""
    runs: list[tuple[int, int]] = []
    for place in places:
        if runs and place == runs[-1][0] + runs[-1][1] * step:
            runs[-1] = runs[-1][0], runs[-1][1] + 1
        else:
            runs.append((place, 1))
    return runs


def _joined(builder: ir.IRBuilder, parts: Sequence[Any]) -> Any:
    """Vectors one behind the other."""
    whole = parts[0]
    for part in parts[1:]:
        have, more = whole.type.count, part.type.count
        longest = max(have, more)
        both = []
        for vector in (whole, part):
            count = vector.type.count
            order = [min(number, count - 1) for number in range(longest)]
            both.append(vector if count == longest else lanes.shuffled(builder, vector, order))
        order = [*range(have), *range(longest, longest + more)]
        mask = ir.Constant(ir.VectorType(I32, len(order)), order)
        whole = builder.shuffle_vector(both[0], both[1], mask)
    return whole


def _gather(e: Emitter, access: Access, values: Sequence[int], host: Any) -> list[Any]:
    builder, one = e.builder, lanes.integer(access.bits)
    results = []
    for number in range(access.count):
        value: Any = ir.Constant(lanes.vector(one), ir.Undefined)
        for lane, offset in enumerate(values):
            at = ir.Constant(I64, offset + number * access.bits // 8)
            item = builder.load(builder.gep(host, [at], source_etype=I8), typ=one)
            value = builder.insert_element(value, item, ir.Constant(I32, lane))
        results.append(value)
    return results


# Stores.


def _store_shaped(
    e: Emitter,
    access: Access,
    places: Sequence[int],
    host: Any,
    values: Sequence[Any],
    mask: Any,
) -> list[Any]:
    """Contiguous lanes in one piece; anything else lane by lane, the highest last."""
    builder = e.builder
    contiguous = all(place == places[0] + lane * access.bytes for lane, place in enumerate(places))
    if not contiguous:
        _scatter(e, access, places, host, values, mask)
        return []
    at = builder.gep(host, [ir.Constant(I64, places[0])], source_etype=I8)
    whole = _interleaved(builder, values)
    full = builder.icmp_unsigned("==", mask, ir.Constant(I32, FULL))
    yes, no = (e.function.append_basic_block(name) for name in ("full", "partial"))
    after = e.function.append_basic_block("stored")
    resolve.likely(builder, full, yes, no)
    builder = ir.IRBuilder(yes)
    builder.store(whole, at, align=access.bits // 8)
    builder.branch(after)
    builder = ir.IRBuilder(no)
    some = lanes.mask_lanes(builder, mask)
    order = [lane // access.count for lane in range(LANES * access.count)]
    some = some if access.count == 1 else lanes.shuffled(builder, some, order)
    name = f"llvm.masked.store.{lanes.suffix(whole.type)}.p0"
    # Since LLVM 22 the alignment is an attribute of the pointer; one byte when there is none.
    arguments = [whole, at, some]
    builder.call(lanes.declared(e.module, name, ir.VoidType(), arguments), arguments)
    builder.branch(after)
    e.builder = ir.IRBuilder(after)
    return []


def _interleaved(builder: ir.IRBuilder, values: Sequence[Any]) -> Any:
    """Lane by lane, all elements of a lane side by side."""
    if len(values) == 1:
        return values[0]
    whole = _joined(builder, values)
    count = len(values)
    return lanes.shuffled(
        builder, whole, [n * LANES + lane for lane in range(LANES) for n in range(count)]
    )


def _scatter(
    e: Emitter,
    access: Access,
    places: Sequence[int],
    host: Any,
    values: Sequence[Any],
    mask: Any,
) -> None:
    builder = e.builder
    addresses = lanes.splat(builder, builder.ptrtoint(host, I64))
    offsets = ir.Constant(addresses.type, [place % (1 << 64) for place in places])
    resolve.scatter(e, access, builder.add(addresses, offsets), mask, values)


def _store_slowly(
    e: Emitter, access: Access, place: Place, values: Sequence[Any], mask: Any
) -> list[Any]:
    resolve.store(e, access, place.every(), mask, values)
    return []
