"""The machine: memory, modules, and launches of their kernels.

    machine = Machine()
    x = machine.array(numpy.arange(1024, dtype=numpy.float32))
    machine.load(text)["scale"][8, 128](x, numpy.float32(2))

A kernel is compiled when it is first launched with a layout of blocks, and kept. A launch
returns when all blocks have run; a fault raises `LaunchFailed` and leaves the machine
usable.
"""

from __future__ import annotations

import ctypes
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bedplate.core import nearest
from bedplate.core.launch import LaunchFault, LaunchRecord, LaunchStatus, Triple
from bedplate.simt import abi, arguments, graph, grid, printing, stored
from bedplate.simt.arguments import DeviceArray
from bedplate.simt.errors import LaunchFailed, LaunchInvalid
from bedplate.simt.memory import DEFAULT_BYTES, HostWindow, Memory
from bedplate.simt.module import Function, Instruction, Module
from bedplate.simt.parser import parse
from bedplate.simt.report import Report
from bedplate.simt.scalar import LANES
from bedplate.simt.schedule import CUTS, SCHEDULES, Order, Schedule, waits
from bedplate.simt.signature.atomic import ORDERED
from bedplate.simt.telemetry import Counters
from bedplate.simt.tool import Tool
from bedplate.simt.uniformity import Layout

MOST_THREADS = 1024
"""Threads of a block, for every architecture since sm_20."""
MOST_BLOCKS = (2**31 - 1, 65535, 65535)
MOST_BLOCK = (1024, 1024, 64)
DEFAULT_BUDGET = 1 << 34
"""Instructions of one warp before a launch counts as endless: half a minute or more."""
DYNAMIC_SHARED_LIMIT = 227 << 10


@dataclass(frozen=True)
class Run:
    """A launch that ended well; `report` is there when it was profiled."""

    record: LaunchRecord
    report: Report | None = None
    printed: str = ""
    """What the kernel's `printf` calls say, block by block."""
    printed_lost: int = 0
    """Calls that found no room; the machine's `printf` is how many there is room for."""


class Machine:
    """A software GPU. `arch` names what it stands for, such as `sm_90`.

    `memory` is the size of its address space in bytes; `windows` are buffers of the caller
    that appear at device addresses; `threads` is how many of the host's cores a launch
    uses, all by default; `schedule` is how lanes of a warp take turns (`schedule`), with
    `seed` for lots; `printf` is how many calls of it a launch keeps.
    """

    def __init__(
        self,
        arch: str = "sm_90",
        *,
        seed: int = 0,
        memory: int = DEFAULT_BYTES,
        windows: Sequence[HostWindow] = (),
        threads: int | None = None,
        schedule: Schedule = "its",
        printf: int = printing.CAPACITY,
    ) -> None:
        if not re.fullmatch(r"sm_\d+[af]?", arch):
            raise LaunchInvalid(f"the architecture {arch!r} is not of the form sm_90")
        if threads is not None and threads < 1:
            raise LaunchInvalid(f"{threads} threads cannot run anything")
        if schedule not in SCHEDULES:
            raise LaunchInvalid(
                f"the schedule {schedule!r} is unknown", remedy=f"one of {', '.join(SCHEDULES)}"
            )
        self.arch = arch
        if printf < 0:
            raise LaunchInvalid(f"{printf} calls of printf cannot be kept")
        self.schedule = schedule
        self.printf = printf
        self.seed = seed
        self.counters = Counters()
        self.memory = Memory(memory, windows, self.counters)
        self.threads = threads or grid.threads_of_host()
        self.threads_given = threads is not None
        self.cancel = ctypes.c_uint32(0)
        """Set it from another thread and every running kernel ends at its next loop."""

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the memory back."""
        self.memory.close()

    def telemetry(self) -> Mapping[str, int]:
        """What it has done since it was made: counters that never fall, see `telemetry.NAMES`."""
        return self.counters.read()

    def array(self, source: Any) -> DeviceArray:
        """A copy of an array of the host in the machine's memory."""
        data = np.ascontiguousarray(source)
        made = self.empty(np.shape(source), data.dtype)
        made.view()[...] = data.reshape(made.shape)
        return made

    def empty(self, shape: int | Sequence[int], dtype: Any) -> DeviceArray:
        """Memory for an array, with whatever it holds."""
        size = (shape,) if isinstance(shape, int) else tuple(shape)
        kind = np.dtype(dtype)
        count = int(np.prod(size, dtype=np.int64)) * kind.itemsize
        address = self.memory.allocate(count)
        self.memory.written[address] = np.zeros(count, bool)
        return DeviceArray(self, size, kind, address)

    def load(self, text: str, name: str = "<ptx>") -> LoadedModule:
        """Parse a PTX text and place its variables; raises `PtxInvalid`."""
        return LoadedModule(self, parse(text, name), stored.digest(text))


class LoadedModule:
    """A module whose variables have addresses; kernels by their names."""

    def __init__(self, machine: Machine, module: Module, digest: str | None = None) -> None:
        self.machine = machine
        self.module = module
        self.digest = digest
        """Of the text, for the cache of code; None keeps nothing."""
        self.symbols: dict[str, int] = {}
        functions = module.functions.values()
        own = [variable for function in functions for variable in function.variables]
        for variable in (*module.variables.values(), *own):
            if variable.space in ("global", "const"):
                address = machine.memory.allocate(max(variable.size, 1))
                view = machine.memory.view(address, variable.size)
                assert view is not None
                initial = variable.initial or b""
                view[:] = np.frombuffer(initial.ljust(variable.size, b"\0"), np.uint8)
                self.symbols[variable.name] = address
        self._kernels: dict[str, Kernel] = {}

    def __getitem__(self, name: str) -> Kernel:
        if name not in self._kernels:
            if name not in self.module.kernels:
                raise LaunchInvalid(
                    f"{self.module.name} has no kernel {name!r}",
                    remedy=nearest.hint(name, self.module.kernels),
                )
            self._kernels[name] = Kernel(self, self.module.functions[name])
        return self._kernels[name]

    def __iter__(self) -> Any:
        return iter(self.module.kernels)


class Kernel:
    """A kernel of a loaded module: `kernel[grid, block](arguments)`."""

    def __init__(self, loaded: LoadedModule, function: Function) -> None:
        # LLVM takes a tenth of a second to import, and checking a text needs none of it.
        from bedplate.simt import compiler

        self._compiler = compiler
        self.loaded = loaded
        self.machine = loaded.machine
        self.function = function
        self.graph = graph.build(function)
        self.places = compiler.places(function, loaded.module.variables)
        self._code: dict[Any, Any] = {}
        self._graphs: dict[Order, graph.Graph] = {"lowest": self.graph}
        self._orders: dict[Layout, Order] = {}
        self.ordered = any(_is_ordered(made) for made in function.instructions)
        """Whether results depend on which block comes first; it then runs on one thread."""
        self.prints = any(made.opcode == "vprintf" for made in function.instructions)

    @property
    def name(self) -> str:
        """Its name in the text."""
        return self.function.name

    def __getitem__(self, shape: Any) -> Any:
        if not isinstance(shape, tuple) or not 2 <= len(shape) <= 3:
            raise LaunchInvalid(
                f"{self.name}[{shape}] is no launch", remedy="write kernel[grid, block](...)"
            )
        dynamic = shape[2] if len(shape) == 3 else 0

        def start(*values: Any, **options: Any) -> Run:
            return self.launch(shape[0], shape[1], values, dynamic_shared=dynamic, **options)

        return start

    def __call__(self, grid_shape: Any, block_shape: Any, values: Sequence[Any]) -> Run:
        """The form that CuPy's raw kernels have."""
        return self.launch(grid_shape, block_shape, values)

    def order(self, layout: Layout) -> Order:
        """In which order the lanes of a warp run, by the machine's schedule."""
        if self.machine.schedule != "its":
            return self.machine.schedule
        if layout not in self._orders:
            shapes = self._compiler.plan(self.graph, self.places, layout, full=True).uniformity
            self._orders[layout] = "its" if waits(self.graph, shapes) else "lowest"
        return self._orders[layout]

    def graph_for(self, order: Order) -> graph.Graph:
        """The kernel's blocks, cut as an order of lanes needs them."""
        if order not in self._graphs:
            self._graphs[order] = graph.build(self.function, CUTS[order])
        return self._graphs[order]

    def code(self, layout: Layout, *, full: bool, tool: type[Tool] | None = None) -> Any:
        """The machine code for one layout of blocks, and the tool that was compiled in."""
        key = layout, full, tool
        if key not in self._code:
            made = () if tool is None else (tool(),)
            code = self._object(layout, full, made)
            self._code[key] = self._compiler.load(code), made[0] if made else None
        return self._code[key]

    def _object(self, layout: Layout, full: bool, tools: tuple[Tool, ...]) -> bytes:
        """The object file; without tools, whose places are found while compiling, from disk."""

        compiled: list[Order] = []

        def make() -> tuple[Order, bytes]:
            order = self.order(layout)
            compiled.append(order)
            self.machine.counters.add(kernels_compiled=1)
            plan = self._compiler.plan(
                self.graph_for(order), self.places, layout, full=full, tools=tools, order=order
            )
            return order, self._compiler.object_code(plan)

        digest, schedule = self.loaded.digest, self.machine.schedule
        if digest is None or tools:
            return make()[1]
        order, code = stored.code((digest, self.name, repr(layout), str(full), schedule), make)
        self._orders.setdefault(layout, order)
        self.machine.counters.add(kernels_from_disk=not compiled)
        return code

    def launch(
        self,
        grid_shape: Any,
        block_shape: Any,
        values: Sequence[Any],
        *,
        dynamic_shared: int = 0,
        budget: int = DEFAULT_BUDGET,
        profile: bool = False,
    ) -> Run:
        """Run the kernel on a grid of blocks; returns when it has ended.

        With `profile` the run's report says what was counted.

        Raises `LaunchInvalid` before anything runs, `LaunchFailed` for a fault.
        """
        shape = LaunchShape.of(self, grid_shape, block_shape, dynamic_shared)
        parameters = arguments.pack(
            self.function, self.places.parameters, self.places.parameter_bytes, values
        )
        counting = self._compiler.CountingTool if profile else None
        layout, full = Layout.of(shape.block), shape.threads % LANES == 0
        code, tool = self.code(layout, full=full, tool=counting)
        counters: list[Any] = []
        make = self.launches(shape, parameters, budget)
        if tool is not None:
            make = _counting(make, len(tool.places), counters)
        rings: list[Any] = []
        if self.prints:
            make = _printing(make, self.machine.printf, rings)
        self.machine.memory.written.clear()  # what this launch writes is not watched
        began = time.perf_counter_ns()
        alone = self.ordered and not self.machine.threads_given
        threads = 1 if alone else self.machine.threads
        record = grid.run(code.launch, make, shape.blocks, threads)
        elapsed = time.perf_counter_ns() - began
        calls, lost = printing.gathered(rings, self.machine.printf)
        self.machine.counters.add(
            launches=1,
            launches_failed=record is not None,
            blocks=0 if record is not None else shape.blocks,
            threads=0 if record is not None else shape.blocks * shape.threads,
            busy_ns=elapsed,
            printf_calls=len(calls) + lost,
            printf_lost=lost,
        )
        printed = printing.text(calls, self.machine.memory)
        if record is not None:
            failure = self.failure(shape, record)
            failure.printed, failure.printed_lost = printed, lost
            raise failure
        launched = self.record(shape, "ok", elapsed)
        if tool is None:
            return Run(launched, None, printed, lost)
        counts = tool.counts(
            self.graph_for(self.order(layout)),
            [sum(column) for column in zip(*counters, strict=True)],
        )
        report = Report.of(self.function, launched, self.loaded.module.name, counts)
        return Run(replace(launched, counters=report.metrics), report, printed, lost)

    def launches(self, shape: LaunchShape, parameters: bytes, budget: int) -> Any:
        """A function that makes what one host thread is told, with its fault record."""
        machine = self.machine
        block = ctypes.create_string_buffer(parameters, len(parameters))
        windows = machine.memory.table()
        names = sorted(self.places.symbols, key=self.places.symbols.__getitem__)
        addresses = [self.loaded.symbols[name] for name in names]
        symbols = (ctypes.c_uint64 * max(len(names), 1))(*addresses)

        def make() -> tuple[abi.Launch, abi.FaultRecord]:
            record = abi.FaultRecord()
            launch = abi.Launch(
                struct_size=ctypes.sizeof(abi.Launch),
                parameters=ctypes.addressof(block),
                grid=shape.grid,
                block=shape.block,
                windows=ctypes.addressof(windows),
                window_count=len(windows),
                symbols=ctypes.addressof(symbols),
                shared_bytes=self.places.shared_bytes + shape.dynamic_shared,
                dynamic_shared_bytes=shape.dynamic_shared,
                budget=budget,
                cancel=ctypes.addressof(machine.cancel),
                fault=ctypes.addressof(record),
                seed=machine.seed,
            )
            # A pointer in a structure keeps nothing alive.
            launch.keep = (block, windows, symbols, record)
            return launch, record

        return make

    def record(
        self,
        shape: LaunchShape,
        status: LaunchStatus,
        elapsed_ns: int,
        fault: LaunchFault | None = None,
    ) -> LaunchRecord:
        """The launch in launch/1."""
        return LaunchRecord(
            kernel=self.name,
            backend="simt",
            device="simt:0",
            arch=self.machine.arch,
            grid=shape.grid,
            block=shape.block,
            status=status,
            elapsed_ns=elapsed_ns,
            dynamic_shared_bytes=shape.dynamic_shared,
            seed=self.machine.seed,
            schedule=self.machine.schedule,
            fault=fault,
        )

    def failure(self, shape: LaunchShape, record: Any) -> LaunchFailed:
        """The error of a fault record."""
        lane = max((record.mask & -record.mask).bit_length() - 1, 0)
        linear = record.warp * LANES + lane
        block, thread = _place(record.block, shape.grid), _place(linear, shape.block)
        made = None
        if record.instruction < len(self.function.instructions):
            made = self.function.instructions[record.instruction]
        code = abi.Code(record.code)
        status = _STATUS.get(code, "fault")
        where = f"kernel {self.name}, block {block}"
        if made is not None:
            where += f", thread {thread}, {self.loaded.module.name}:{made.place.line} {made.text}"
            if made.source is not None:
                where += f" ({made.source.file}:{made.source.line})"
        text = f"{grid.message(record)}: {where}"
        fault = None
        if status == "fault":
            touched = code in (abi.Code.BOUNDS, abi.Code.MISALIGNED)
            fault = LaunchFault(
                kind=code.name.lower(),
                message=grid.message(record),
                file=None if made is None or made.source is None else made.source.file,
                line=None if made is None or made.source is None else made.source.line,
                block=block,
                thread=thread,
                address=record.addresses[lane] if touched else None,
            )
        return LaunchFailed(text, status=status, fault=fault)


def _is_ordered(made: Instruction) -> bool:
    """Whether an atomic's outcome depends on its turn among blocks."""
    if made.form.group != "atomic" or made.slots.get("space") == "shared":
        return False
    return made.slots["op"] in ORDERED or made.type.kind == "float"


def _counting(make: Any, size: int, kept: list[Any]) -> Any:
    """`make`, with an array of counters for each host thread, kept in a list."""

    def counting() -> tuple[abi.Launch, abi.FaultRecord]:
        launch, record = make()
        counters = (ctypes.c_uint64 * max(size, 1))()
        launch.counters = ctypes.addressof(counters)
        kept.append(counters)
        return launch, record

    return counting


def _printing(make: Any, capacity: int, kept: list[Any]) -> Any:
    """`make`, with a ring for `printf` for each host thread, kept in a list."""

    def with_ring() -> tuple[abi.Launch, abi.FaultRecord]:
        launch, record = make()
        made = printing.ring(capacity)
        launch.printf = ctypes.addressof(made[0])
        kept.append(made)
        return launch, record

    return with_ring


_STATUS: Mapping[abi.Code, LaunchStatus] = {
    abi.Code.BUDGET: "budget",
    abi.Code.CANCELLED: "cancelled",
    abi.Code.BARRIER: "deadlock",
    abi.Code.DEADLOCK: "deadlock",
}


def _place(linear: int, shape: Triple) -> Triple:
    width, height, _ = shape
    return linear % width, linear // width % height, linear // (width * height)


@dataclass(frozen=True)
class LaunchShape:
    """A grid and a block that were found good."""

    grid: Triple
    block: Triple
    dynamic_shared: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @staticmethod
    def of(kernel: Kernel, grid_shape: Any, block_shape: Any, dynamic_shared: int) -> LaunchShape:
        """Check what a caller asked for; raises `LaunchInvalid` with value and limit."""
        made = LaunchShape(
            _triple("grid", grid_shape, MOST_BLOCKS),
            _triple("block", block_shape, MOST_BLOCK),
            dynamic_shared,
        )
        limit = MOST_THREADS
        if most := kernel.function.limits.get("maxntid"):
            limit = min(limit, int(np.prod(most)))
        if made.threads > limit:
            raise LaunchInvalid(
                f"a block of {made.threads} threads is more than {kernel.name}'s {limit}"
            )
        required = kernel.function.limits.get("reqntid")
        if required and made.block != (*required, 1, 1)[:3]:
            raise LaunchInvalid(f"{kernel.name} wants blocks of {required}, not {made.block}")
        if not 0 <= dynamic_shared + kernel.places.shared_bytes <= DYNAMIC_SHARED_LIMIT:
            raise LaunchInvalid(
                f"{dynamic_shared} bytes of dynamic shared memory beside "
                f"{kernel.places.shared_bytes} are more than {DYNAMIC_SHARED_LIMIT}"
            )
        return made


def _triple(what: str, shape: Any, most: Triple) -> Triple:
    given = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    if not 1 <= len(given) <= 3:
        raise LaunchInvalid(f"a {what} has one to three sizes, not {len(given)}")
    full = tuple(int(size) for size in (*given, 1, 1)[:3])
    for size, limit in zip(full, most, strict=True):
        if not 1 <= size <= limit:
            raise LaunchInvalid(f"a {what} of {size} is not between 1 and {limit}")
    return full[0], full[1], full[2]
