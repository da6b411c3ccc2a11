"""What a warp function keeps while its code is made, and how operands are read.

Each PTX register is a stack slot of LLVM's (which its own passes turn into values): a
scalar, a scalar with a known pattern over the lanes, or `<32 x T>`, by its shape; see
`uniformity`. Predicates are `i1` or a mask. Reading changes nothing; `emitter` writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from bedplate.simt import abi, lanes, nans
from bedplate.simt.graph import Graph
from bedplate.simt.lanes import I1, I8, I32, I64
from bedplate.simt.module import (
    Immediate,
    Negated,
    Operand,
    Register,
    Special,
    VariableAddress,
)
from bedplate.simt.nans import Content
from bedplate.simt.scalar import FULL, LANES, Scalar
from bedplate.simt.structure import field_place
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


class Reader:
    """The registers and places of a warp function, and how operands become values."""

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
