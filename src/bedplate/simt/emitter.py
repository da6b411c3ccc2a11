"""The registers of a warp function while its code is made.

Each PTX register is a stack slot of LLVM's (which its own passes turn into values): a
scalar, a scalar with a known pattern over the lanes, or `<32 x T>`, by its shape; see
`uniformity`. Predicates are `i1` or a mask. This is what lowerings talk to: they read
operands, write results, and ask for the mask; how a register is kept is not their matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from bedplate.simt import abi, lanes, nans
from bedplate.simt.graph import Graph
from bedplate.simt.lanes import I1, I8, I32, I64, PTR
from bedplate.simt.lowering.base import LANEWISE, LOWERINGS
from bedplate.simt.module import (
    Immediate,
    Instruction,
    Negated,
    Operand,
    Register,
    Special,
    VariableAddress,
)
from bedplate.simt.nans import Content
from bedplate.simt.scalar import FULL, LANES, Scalar
from bedplate.simt.tool import Tool
from bedplate.simt.uniformity import Extended, Pattern, Shape, Uniformity


@dataclass
class Slot:
    """Where a register is kept: `main` its bits, and for some shapes a second part.

    `second` is the 32-bit index of an Extended shape, or the mask of lanes whose content
    is a number (`nans`).
    """

    shape: Shape
    main: Any
    second: Any | None = None


class Emitter:
    """Makes the code of one kernel's instructions; `warp` drives it."""

    def __init__(
        self,
        graph: Graph,
        uniformity: Uniformity,
        function: ir.Function,
        tools: Sequence[Tool] = (),
    ) -> None:
        self.graph = graph
        self.uniformity = uniformity
        self.content = nans.analyse(graph, uniformity.shapes)
        self.function = function
        self.module = function.module
        self.launch, self.block, self.warp = function.args
        self.tools = tools
        self.entry = ir.IRBuilder(function.append_basic_block("entry"))
        self.builder = self.entry
        self.specials: dict[str, Any] = {}
        self.slots = [self._slot(register) for register in graph.function.registers]
        self.block_mask: Any = ir.Constant(I32, FULL)
        self.guard: Any | None = None
        self.frozen = 0
        self.shared_offsets: dict[str, int] = {}
        self.local_offsets: dict[str, int] = {}
        self.symbols: dict[str, int] = {}
        self.parameter_offsets: dict[str, int] = {}
        self.local_bytes = 0
        self.live: Any = None
        self.windows: dict[str, tuple[Any, Any, Any]] = {}
        self.sited = False
        self.accesses = 0
        self.scratch = lanes.room(self.entry, 32 * LANES, 64)

    # Storage.

    def _slot(self, register: Register) -> Slot:
        shape = self.uniformity.shapes[register.index]
        bits = lanes.integer(register.type.bits)
        if register.type.kind == "pred":
            return Slot(shape, self._zeroed(I1 if shape is not None else I32))
        if shape is None:
            mixed = self.content[register.index] is Content.MIXED
            second = self._zeroed(I32) if mixed else None
            return Slot(shape, self._zeroed(lanes.vector(bits)), second)
        return Slot(
            shape,
            self._zeroed(bits),
            self._zeroed(I32) if isinstance(shape, Extended) else None,
        )

    def _zeroed(self, kind: ir.Type) -> Any:
        """A register that was never written holds zeros, as a freed slot would not."""
        made = self.entry.alloca(kind)
        self.entry.store(ir.Constant(kind, None), made)
        return made

    def field(self, pointer: Any, structure: type, name: str, index: int = 0) -> Any:
        """The value of a field of one of the ABI's structures."""
        where, kind = self.place(pointer, structure, name, index)
        return self.builder.load(where, typ=kind)

    def place(
        self, pointer: Any, structure: type, name: str, index: int = 0
    ) -> tuple[Any, ir.Type]:
        """Where a field lies, and its type."""
        return field_place(self.builder, pointer, structure, name, index)

    # Reading.

    def shape(self, operand: Operand | None) -> Shape:
        """The shape of an operand over the lanes; see `uniformity`."""
        return self.uniformity.of(operand)

    def uniform(self, operand: Operand | None) -> bool:
        """Whether all lanes have the same."""
        shape = self.shape(operand)
        return shape is not None and shape.uniform

    def base(self, operand: Operand, scalar: Scalar) -> Any:
        """The scalar part of an operand that has a shape, as `scalar` reads it."""
        builder = self.builder
        if isinstance(operand, Register):
            value = builder.load(self.slots[operand.index].main)
            return self._viewed(value, scalar)
        if isinstance(operand, Negated):
            return builder.not_(builder.load(self.slots[operand.register.index].main))
        if isinstance(operand, Immediate):
            constant = ir.Constant(lanes.integer(scalar.bits), operand.bits)
            return self._viewed(constant, scalar)
        if isinstance(operand, Special):
            return self._viewed(self.specials[operand.name], scalar)
        if isinstance(operand, VariableAddress):
            return self._viewed(self._variable(operand, scalar), scalar)
        raise TypeError(f"{operand} has no scalar part")

    def _viewed(self, value: Any, scalar: Scalar) -> Any:
        """Bits of a register as an instruction's type reads them."""
        if scalar.kind == "pred":
            return value
        bits = lanes.resized(self.builder, value, scalar.bits)
        return lanes.cast(self.builder, bits, lanes.element(scalar))

    def _variable(self, operand: VariableAddress, scalar: Scalar) -> Any:
        variable = operand.variable
        if variable.space == "shared":
            offset = self.shared_offsets[variable.name] + operand.offset
            return ir.Constant(lanes.integer(scalar.bits), offset)
        if variable.space == "local":
            offset = self.local_offsets[variable.name] + operand.offset
            return ir.Constant(lanes.integer(scalar.bits), offset)
        table = self.field(self.launch, abi.Launch, "symbols")
        place = self.builder.gep(
            table, [ir.Constant(I64, 8 * self.symbols[variable.name])], source_etype=I8
        )
        address = self.builder.load(place, typ=I64)
        address = self.builder.add(address, ir.Constant(I64, operand.offset))
        return lanes.resized(self.builder, address, scalar.bits)

    def vector(self, operand: Operand, scalar: Scalar, *, numbers: bool = False) -> Any:
        """All lanes of an operand; `numbers`: any NaN will do for another."""
        builder, shape = self.builder, self.shape(operand)
        if scalar.kind == "pred":
            return self._predicate(operand)
        if shape is None:
            value = self._lanes(operand, numbers)
        elif isinstance(shape, Extended):
            assert isinstance(operand, Register)
            value = self.extended_lanes(self.slots[operand.index])
        else:
            value = self._patterned(operand, shape, scalar)
        bits = lanes.resized(builder, value, scalar.bits)
        return lanes.cast(builder, bits, lanes.element(scalar))

    def _patterned(self, operand: Operand, shape: Pattern, scalar: Scalar) -> Any:
        builder = self.builder
        if isinstance(operand, Register):
            base = builder.load(self.slots[operand.index].main)
        elif isinstance(operand, Special):
            base = self.specials[operand.name]
        else:
            base = lanes.cast(builder, self.base(operand, scalar), lanes.integer(scalar.bits))
        value = lanes.splat(builder, base)
        if shape.uniform:
            return value
        width = base.type.width
        pattern = [v % (1 << width) for v in shape.values]
        return builder.add(value, ir.Constant(value.type, pattern))

    def extended_lanes(self, slot: Slot) -> Any:
        """All lanes of a register whose shape is Extended, exactly."""
        builder, shape = self.builder, slot.shape
        assert isinstance(shape, Extended)
        index = lanes.splat(builder, builder.load(slot.second))
        pattern = [v % (1 << 32) for v in shape.values]
        index = builder.add(index, ir.Constant(index.type, pattern))
        wide = lanes.resized(builder, index, 64, signed=shape.signed)
        scaled = builder.mul(wide, lanes.like(wide, shape.scale % (1 << 64)))
        return builder.add(lanes.splat(builder, builder.load(slot.main)), scaled)

    def _lanes(self, operand: Operand, numbers: bool) -> Any:
        builder = self.builder
        if isinstance(operand, Special):
            return self.specials[operand.name]
        assert isinstance(operand, Register), operand
        slot, content = self.slots[operand.index], self.content[operand.index]
        value = builder.load(slot.main)
        if numbers or content is Content.BITS:
            return value
        return self.canonical(value, None if slot.second is None else builder.load(slot.second))

    def canonical(self, value: Any, which: Any | None = None) -> Any:
        """NaNs of a value's bits made canonical, in the lanes of the mask `which`."""
        builder = self.builder
        bits = lanes.lane_type(value).width
        if bits not in nans.CANONICAL:
            return value
        of = {16: lanes.F16, 32: lanes.F32, 64: lanes.F64}[bits]
        number = lanes.cast(builder, value, of)
        odd = builder.fcmp_unordered("uno", number, number)
        if which is not None:
            odd = builder.and_(odd, lanes.mask_lanes(builder, which))
        return builder.select(odd, lanes.like(value, nans.CANONICAL[bits]), value)

    def _predicate(self, operand: Operand) -> Any:
        builder = self.builder
        if isinstance(operand, Immediate):
            return ir.Constant(lanes.MASK, [operand.bits & 1] * LANES)
        register = operand.register if isinstance(operand, Negated) else operand
        assert isinstance(register, Register)
        slot = self.slots[register.index]
        value = builder.load(slot.main)
        made = (
            lanes.splat(builder, value)
            if slot.shape is not None
            else lanes.mask_lanes(builder, value)
        )
        return builder.not_(made) if isinstance(operand, Negated) else made

    def guard_value(self, register: Register, negated: bool) -> Any:
        """A guard as it is kept: `i1` when all lanes agree, else a mask."""
        value = self.builder.load(self.slots[register.index].main)
        return self.builder.not_(value) if negated else value

    @property
    def mask(self) -> Any:
        """The lanes that run the current instruction, as an `i32`."""
        if self.guard is None:
            return self.block_mask
        builder = self.builder
        if self.guard.type == I1:
            return builder.select(self.guard, self.block_mask, ir.Constant(I32, 0))
        return builder.and_(self.block_mask, self.guard)

    # Writing.

    def write(self, register: Register | None, value: Any, *, number: bool = False) -> None:
        """Set a register in the lanes of `mask`; `number`: its NaN is the canonical one."""
        if register is None:
            return
        builder, slot = self.builder, self.slots[register.index]
        if register.type.kind == "pred":
            self._write_predicate(register, slot, value)
            return
        bits = lanes.cast(builder, value, lanes.integer(self._width(value)))
        if number and (slot.shape is not None or not lanes.is_vector(value)):
            bits = self.canonical(bits)
        bits = lanes.resized(builder, bits, register.type.bits)
        if slot.shape is not None:
            self._store_scalar(slot.main, bits)
            return
        if not lanes.is_vector(bits):
            bits = lanes.splat(builder, bits)
        self._store_lanes(register, slot, bits)
        if slot.second is not None:
            self._mark(slot, self.merge_mask(register), number)

    def _width(self, value: Any) -> int:
        of = lanes.lane_type(value)
        return (
            of.width if isinstance(of, ir.IntType) else {"half": 16, "float": 32}.get(str(of), 64)
        )

    def _store_scalar(self, where: Any, value: Any) -> None:
        builder = self.builder
        if self.guard is not None:
            value = builder.select(self.guard, value, builder.load(where))
        builder.store(value, where)

    def merge_mask(self, register: Register) -> Any | None:
        """The lanes that a write must be kept to, None when it may touch all."""
        if self.guard is not None or self.frozen >> register.index & 1:
            return self.mask
        return None

    def _store_lanes(self, register: Register, slot: Slot, bits: Any) -> None:
        builder = self.builder
        mask = self.merge_mask(register)
        if mask is not None:
            bits = builder.select(lanes.mask_lanes(builder, mask), bits, builder.load(slot.main))
        builder.store(bits, slot.main)

    def _mark(self, slot: Slot, mask: Any | None, number: bool) -> None:
        """Remember which lanes hold a number."""
        builder = self.builder
        if mask is None:
            builder.store(ir.Constant(I32, FULL if number else 0), slot.second)
        elif number:
            builder.store(builder.or_(builder.load(slot.second), mask), slot.second)
        else:
            kept = builder.and_(builder.load(slot.second), builder.not_(mask))
            builder.store(kept, slot.second)

    def _write_predicate(self, register: Register, slot: Slot, value: Any) -> None:
        builder = self.builder
        if slot.shape is not None:
            self._store_scalar(slot.main, value)
            return
        bits = (
            lanes.mask_bits(builder, value) if lanes.is_vector(value) else builder.sext(value, I32)
        )
        mask = self.merge_mask(register)
        if mask is not None:
            old = builder.and_(builder.load(slot.main), builder.not_(mask))
            bits = builder.or_(builder.and_(bits, mask), old)
        builder.store(bits, slot.main)

    # Instructions.

    def emit(self, made: Instruction) -> None:
        """The code of one instruction that is not the end of a block."""
        self.guard = None
        if made.guard is not None:
            self.guard = self.guard_value(made.guard.register, made.guard.negated)
        special = LOWERINGS.get(made.opcode)
        if special is not None:
            special(self, made)
        else:
            self._lanewise(made)
        for register, scalar in made.outputs:
            for tool in self.tools:
                tool.wrote(self, made, register, scalar)
        self.guard = None

    def _lanewise(self, made: Instruction) -> None:
        function = LANEWISE[made.form.group, made.opcode]
        outputs = [register for register, _ in made.outputs]
        operands = [
            (operand, made.types[place.name])
            for place in made.form.inputs
            if (operand := made.operands.get(place.name)) is not None
        ]
        scalar = [r for r in outputs if self.slots[r.index].shape is not None]
        if scalar and len(scalar) == len(outputs):
            if isinstance(self.slots[outputs[0].index].shape, Extended):
                self._extended(made, function, outputs[0], operands)
                return
            values = [self.base(operand, scalar) for operand, scalar in operands]
        elif made.opcode == "mov" and isinstance(operands[0][0], Register):
            self._move(outputs[0], operands[0][0])
            return
        else:
            numbers = nans.reads_numbers(made)
            values = [self.vector(o, scalar, numbers=numbers) for o, scalar in operands]
        number = nans.writes_number(made)
        results = _several(function(self, made, *values))
        for place, result in zip(made.form.outputs, results, strict=False):
            register = made.operands.get(place.name)
            assert register is None or isinstance(register, Register)
            value = result
            if register in scalar and lanes.is_vector(result):
                # Two results of which one must be kept by lane: the other is made again.
                again = _several(function(self, made, *(self.base(o, s) for o, s in operands)))
                value = again[made.form.outputs.index(place)]
            self.write(register, value, number=number)

    def _move(self, output: Register, source: Register) -> None:
        """Copy all lanes with what is known of their NaNs."""
        slot, builder = self.slots[output.index], self.builder
        if output.type.kind == "pred" or self.slots[source.index].shape is not None:
            self.write(output, self.vector(source, output.type))
            return
        origin, content = self.slots[source.index], self.content[source.index]
        self._store_lanes(output, slot, builder.load(origin.main))
        if slot.second is None:
            return
        mask = self.merge_mask(output)
        if origin.second is None:
            self._mark(slot, mask, content is Content.NUMBERS)
            return
        flags = builder.load(origin.second)
        if mask is not None:
            old = builder.and_(builder.load(slot.second), builder.not_(mask))
            flags = builder.or_(builder.and_(flags, mask), old)
        builder.store(flags, slot.second)

    def _extended(
        self,
        made: Instruction,
        function: Any,
        output: Register,
        operands: Sequence[tuple[Operand, Scalar]],
    ) -> None:
        """A result `base + scale * extend(index + pattern)`; see `uniformity`."""
        builder, slot = self.builder, self.slots[output.index]
        for operand, _ in operands:
            if isinstance(self.shape(operand), Extended):
                assert isinstance(operand, Register)
                index = builder.load(self.slots[operand.index].second)
                base = function(self, made, *(self.base(o, s) for o, s in operands))
                break
        else:
            source = next(o for o, _ in operands if not self.uniform(o))
            index = self.base(source, _WORD)
            base = ir.Constant(I64, 0)
            if made.opcode == "mad":
                base = self.base(*operands[2])
        self._store_scalar(slot.main, base)
        self._store_scalar(slot.second, index)

    # Ends.

    def fault(self, code: abi.Code, made: Instruction | None, mask: Any, addresses: Any) -> None:
        """End the warp function here with a fault; `addresses` is `<32 x i64>` or None."""
        builder = self.builder
        record = self.field(self.launch, abi.Launch, "fault")
        values = {
            "code": ir.Constant(I32, int(code)),
            "instruction": ir.Constant(I32, 0xFFFFFFFF if made is None else made.number),
            "mask": mask,
            "warp": self.field(self.warp, abi.Warp, "index"),
            "block": self.field(self.block, abi.Block, "index"),
        }
        for name, value in values.items():
            builder.store(value, self.place(record, abi.FaultRecord, name)[0])
        if addresses is not None:
            where = self.place(record, abi.FaultRecord, "addresses")[0]
            builder.store(addresses, where, align=8)
        builder.ret(ir.Constant(I32, abi.FAULTED))


def _several(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


_WORD = Scalar("b32", "bits", 32)


def field_place(
    builder: ir.IRBuilder, pointer: Any, structure: Any, name: str, index: int = 0
) -> tuple[Any, ir.Type]:
    """Where a field of an ABI structure lies, and its type."""
    described = getattr(structure, name)
    ctype = dict(structure._fields_)[name]
    length = getattr(ctype, "_length_", 1)
    size = described.size // length
    kind = PTR if name in _POINTERS else lanes.integer(8 * size)
    offset = ir.Constant(I64, described.offset + index * size)
    return builder.gep(pointer, [offset], source_etype=I8), kind


_POINTERS = frozenset(
    (
        *("parameters", "windows", "symbols", "cancel", "fault", "trace", "counters", "printf"),
        *("host", "shared", "local", "records", "sites"),
    )
)
