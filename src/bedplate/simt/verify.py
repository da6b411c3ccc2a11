"""Both engines on the same launch, block by block, stopped at the first register that differs.

The fast machine is compiled with a tool that records what each instruction leaves in its
register; the reference writes the same list. Only lanes that ran the instruction count.
After the last block the memories are compared too. A block whose list is longer than the
buffer is compared as far as it goes, and that is said.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir

import bedplate.simt.interpreter.classes  # noqa: F401 - registers the reference
from bedplate.simt import abi, arguments, compiler, lanes, printing
from bedplate.simt.emitter import Emitter
from bedplate.simt.errors import EnginesDiffer
from bedplate.simt.interpreter.base import Lanes
from bedplate.simt.interpreter.engine import Fault, Grid, Observer, WarpState
from bedplate.simt.interpreter.scheduled import WARPS
from bedplate.simt.lanes import I8, I32, I64
from bedplate.simt.machine import DEFAULT_BUDGET, Kernel, LaunchShape
from bedplate.simt.module import Instruction, Register
from bedplate.simt.scalar import LANES, Scalar
from bedplate.simt.structure import field_place
from bedplate.simt.tool import Tool
from bedplate.simt.uniformity import Layout

RECORDS = 1 << 18
"""Records of one block: 69 MB; the longest kernels of the tests write a tenth of it."""


class TraceTool(Tool):
    """Records every register that is written."""

    key = "trace"

    def wrote(
        self, emitter: Emitter, made: Instruction, register: Register, scalar: Scalar
    ) -> None:
        """Append a record if there is room."""
        builder = emitter.builder
        trace = emitter.field(emitter.launch, abi.Launch, "trace")
        where, kind = emitter.place(trace, abi.Trace, "used")
        used = builder.load(where, typ=kind)
        builder.store(builder.add(used, ir.Constant(I64, 1)), where)
        room = builder.icmp_unsigned("<", used, emitter.field(trace, abi.Trace, "capacity"))
        mask = emitter.mask
        values = self._values(emitter, register)
        builder = emitter.builder
        here = emitter.function.append_basic_block("trace")
        after = emitter.function.append_basic_block("traced")
        builder.cbranch(room, here, after)
        emitter.builder = builder = ir.IRBuilder(here)
        records = emitter.field(trace, abi.Trace, "records")
        offset = builder.mul(used, ir.Constant(I64, ctypes.sizeof(abi.TraceRecord)))
        record = builder.gep(records, [offset], source_etype=I8)
        words = {
            "instruction": ir.Constant(I32, made.number),
            "mask": mask,
            "register": ir.Constant(I32, register.index),
            "warp": emitter.field(emitter.warp, abi.Warp, "index"),
        }
        for name, value in words.items():
            builder.store(value, field_place(builder, record, abi.TraceRecord, name)[0])
        place = field_place(builder, record, abi.TraceRecord, "values")[0]
        builder.store(values, place, align=8)
        builder.branch(after)
        emitter.builder = ir.IRBuilder(after)

    def _values(self, emitter: Emitter, register: Register) -> Any:
        value = emitter.vector(register, _as_bits(register))
        return lanes.resized(emitter.builder, value, 64)


def _as_bits(register: Register) -> Scalar:
    bits = register.type.bits
    return register.type if bits == 1 else Scalar(f"u{bits}", "unsigned", bits)


@dataclass
class Written:
    """One record of the reference."""

    made: Instruction
    warp: int
    mask: int
    register: Register
    values: list[int]


class Recorder(Observer):
    """Watches the reference; keeps what it writes."""

    def __init__(self) -> None:
        self.written: list[Written] = []

    def wrote(self, warp: WarpState, made: Instruction, register: Register, bits: Lanes) -> None:
        """Keep the register as it is now."""
        self.written.append(Written(made, warp.index, warp.mask, register, bits.tolist()))


@dataclass(frozen=True)
class Verified:
    """How much was compared: registers written, and blocks whose lists were too long."""

    registers: int
    blocks: int
    cut: int


def verify(
    kernel: Kernel,
    grid_shape: Any,
    block_shape: Any,
    values: Sequence[Any],
    *,
    dynamic_shared: int = 0,
    budget: int = DEFAULT_BUDGET,
) -> Verified:
    """Run a launch on both engines; memory ends as the launch leaves it.

    Raises `EnginesDiffer` at the first difference, `LaunchFailed` when both fault alike.
    """
    shape = LaunchShape.of(kernel, grid_shape, block_shape, dynamic_shared)
    places = kernel.places
    parameters = arguments.pack(kernel.function, places.parameters, places.parameter_bytes, values)
    layout = Layout.of(shape.block)
    order = kernel.order(layout)
    plan = compiler.plan(
        kernel.graph_for(order),
        places,
        layout,
        full=shape.threads % LANES == 0,
        tools=(TraceTool(),),
        order=order,
    )
    code = compiler.load(compiler.object_code(plan))
    memory = kernel.machine.memory
    both = Grid(
        kernel.graph_for(order),
        places,
        memory,
        kernel.loaded.symbols,
        shape.grid,
        shape.block,
        parameters,
        dynamic_shared,
        budget,
        seed=kernel.machine.seed,
        warp=WARPS[order],
    )
    launch, record = kernel.launches(shape, parameters, budget)()
    buffer = np.zeros(RECORDS * ctypes.sizeof(abi.TraceRecord), np.uint8)
    trace = abi.Trace(buffer.ctypes.data, RECORDS, 0)
    launch.trace = ctypes.addressof(trace)
    ring = printing.ring(kernel.machine.printf)
    launch.printf = ctypes.addressof(ring[0])
    compared = cut = 0
    for number in range(shape.blocks):
        before = _contents(memory)
        both.printed.clear()
        recorder = Recorder()
        both.observer = recorder
        fault = _reference(both, number)
        after = _contents(memory)
        _restore(memory, before)
        trace.used = ring[0].used = 0
        status = code.launch(ctypes.addressof(launch), number, 1)
        fast = list(_records(buffer, min(trace.used, RECORDS)))
        _compare(kernel, number, recorder.written, fast, cut=trace.used > RECORDS)
        if (fault is None) != (status == 0) or (fault and fault.code != -status):
            raise EnginesDiffer(
                f"{kernel.name}, block {number}: the fast machine ends with {status}, the "
                f"reference with {None if fault is None else fault.code.name}"
            )
        if fault is not None:
            raise kernel.failure(shape, record)
        _compare_printed(kernel, both.printed, ring)
        _compare_memory(kernel, number, after, _contents(memory))
        compared += len(fast)
        cut += trace.used > RECORDS
    return Verified(compared, shape.blocks, cut)


def _reference(both: Grid, number: int) -> Fault | None:
    try:
        both.run_block(number)
    except Fault as fault:
        return fault
    return None


def _contents(memory: Any) -> list[Any]:
    return [span.copy() for _, span in memory.spans()]


def _restore(memory: Any, contents: Sequence[Any]) -> None:
    for (_, span), content in zip(memory.spans(), contents, strict=True):
        span[:] = content


def _records(buffer: Any, count: int) -> Iterator[Any]:
    size = ctypes.sizeof(abi.TraceRecord)
    for index in range(count):
        yield abi.TraceRecord.from_buffer(buffer, index * size)


def _compare(
    kernel: Kernel, block: int, slow: Sequence[Written], fast: Sequence[Any], *, cut: bool
) -> None:
    """Raise at the first record that differs."""
    for reference, record in zip(slow, fast, strict=False):
        same = (
            reference.made.number == record.instruction
            and reference.warp == record.warp
            and reference.mask == record.mask
            and reference.register.index == record.register
        )
        if not same:
            raise EnginesDiffer(
                f"{kernel.name}, block {block}: the reference ran {_where(kernel, reference)}, "
                f"the fast machine instruction {record.instruction} of warp {record.warp} "
                f"with mask {record.mask:#010x}"
            )
        for lane in range(LANES):
            if reference.mask >> lane & 1 and int(reference.values[lane]) != record.values[lane]:
                raise EnginesDiffer(
                    f"{kernel.name}, block {block}, lane {lane}: "
                    f"{reference.register.name} is {int(reference.values[lane]):#x} by the "
                    f"reference and {record.values[lane]:#x} by the fast machine, after "
                    f"{_where(kernel, reference)}"
                )
    if len(slow) != len(fast) and not cut:
        raise EnginesDiffer(
            f"{kernel.name}, block {block}: the reference wrote {len(slow)} registers, the "
            f"fast machine {len(fast)}"
        )


def _where(kernel: Kernel, written: Written) -> str:
    made = written.made
    name = kernel.loaded.module.name
    return f"{name}:{made.place.line} {made.text} in warp {written.warp}"


def _compare_printed(kernel: Kernel, slow: Sequence[printing.Call], ring: Any) -> None:
    """Raise at the first call of `printf` that differs; of a block as many as there is room for."""
    capacity = kernel.machine.printf
    fast, lost = printing.gathered([ring], capacity)
    if len(slow) != len(fast) + lost:
        raise EnginesDiffer(
            f"{kernel.name}: the reference printed {len(slow)} times in a block, the fast "
            f"machine {len(fast) + lost} times"
        )
    for one, other in zip(slow, fast, strict=False):
        memory = kernel.machine.memory
        if printing.told(one, memory) != printing.told(other, memory):
            texts = (repr(printing.text([call], memory)) for call in (one, other))
            raise EnginesDiffer(
                f"{kernel.name}, block {one.block}, thread {one.thread}: the reference printed "
                f"{next(texts)}, the fast machine {next(texts)}"
            )


def _compare_memory(kernel: Kernel, block: int, slow: Sequence[Any], fast: Sequence[Any]) -> None:
    for (base, _), one, other in zip(kernel.machine.memory.spans(), slow, fast, strict=True):
        if (odd := np.flatnonzero(one != other)).size:
            raise EnginesDiffer(
                f"{kernel.name}, block {block}: memory at {base + int(odd[0]):#x} is "
                f"{int(one[odd[0]]):#04x} by the reference and {int(other[odd[0]]):#04x} by "
                f"the fast machine"
            )
