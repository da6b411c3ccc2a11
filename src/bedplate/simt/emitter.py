"""Makes the code of instructions: what lowerings talk to.

They read operands (`reader`), write results, and ask for the mask; how a register is kept
is not their matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from bedplate.simt import abi, lanes, nans
from bedplate.simt.lanes import I32, I64
from bedplate.simt.lowering.base import LANEWISE, LOWERINGS
from bedplate.simt.module import (
    Instruction,
    Operand,
    Register,
)
from bedplate.simt.nans import Content
from bedplate.simt.reader import Reader, Slot
from bedplate.simt.scalar import FULL, Scalar
from bedplate.simt.uniformity import Extended


class Emitter(Reader):
    """Makes the code of one kernel's instructions; `warp` drives it."""

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
