"""From a kernel to machine code: the passes in order, and LLVM's part.

`object_code` is a pure function of a kernel, the layout of its blocks and the host's
processor, so its result can be kept (`cache`); `load` makes it callable.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite
import llvmlite.binding as llvm
from llvmlite import ir

from bedplate.simt import (
    abi,
    block,
    counters,
    entry,
    liveness,
    rounding,
    routine,
    uniformity,
    windows,
)
from bedplate.simt.checks import log
from bedplate.simt.counters import CountingTool
from bedplate.simt.errors import CompilerFailed
from bedplate.simt.graph import Graph
from bedplate.simt.lowering import printing
from bedplate.simt.module import Function, Variable
from bedplate.simt.plan import Plan
from bedplate.simt.scheduled import ScheduledBuilder
from bedplate.simt.stack import StackBuilder
from bedplate.simt.tool import Tool
from bedplate.simt.uniformity import Layout
from bedplate.simt.warp import WarpBuilder

__all__ = [
    "Code",
    "CountingTool",
    "Places",
    "entry_code",
    "load",
    "load_entry",
    "object_code",
    "places",
    "plan",
]

_TEXTS: tuple[tuple[str, Callable[[str], str]], ...] = (
    (r"round\.\S+", rounding.text),
    (r"(?:load|store|scatter|atomic)\.\S+", routine.text),
    (r"find\.\S+", windows.text),
    (r"print\.\S+", printing.text),
    (r"entry\.\S+", lambda _: entry.TEXT),
    (r"count\.\S+", counters.text),
    (r"log\.\S+", log.text),
)
"""Functions that a kernel may call, and who writes them."""


@dataclass(frozen=True)
class Places:
    """Where the variables of a kernel lie in the spaces that every launch has anew.

    Offsets by name; `symbols` numbers the variables whose addresses the machine gives.
    """

    shared: Mapping[str, int]
    shared_bytes: int
    local: Mapping[str, int]
    local_bytes: int
    parameters: Mapping[str, int]
    parameter_bytes: int
    symbols: Mapping[str, int]


def places(function: Function, module_variables: Mapping[str, Variable]) -> Places:
    """The places of a kernel's variables; dynamic shared memory comes last."""
    every = [*module_variables.values(), *function.variables]
    shared, shared_bytes = _laid_out(v for v in every if v.space == "shared")
    local, local_bytes = _laid_out(v for v in every if v.space == "local")
    parameters, parameter_bytes = _laid_out(function.parameters)
    named = [v.name for v in every if v.space in ("global", "const")]
    symbols = {name: number for number, name in enumerate(named)}
    rounded = -(-local_bytes // 16) * 16
    return Places(shared, shared_bytes, local, rounded, parameters, parameter_bytes, symbols)


def _laid_out(variables: Any) -> tuple[dict[str, int], int]:
    """Offsets in the order of the text, unsized variables at the end, and the size."""
    offsets: dict[str, int] = {}
    size = 0
    for variable in sorted(variables, key=lambda v: v.external and not v.size):
        size = -(-size // variable.align) * variable.align
        offsets[variable.name] = size
        size += variable.size
    return offsets, size


def plan(
    graph: Graph,
    where: Places,
    layout: Layout,
    *,
    full: bool,
    tools: tuple[Tool, ...] = (),
    order: str = "lowest",
    sited: bool = False,
) -> Plan:
    """Everything that is decided about a kernel before code is made."""
    live = liveness.analyse(graph)
    analyse = uniformity.analyse if order == "lowest" else uniformity.vectors
    return Plan(
        graph,
        live,
        analyse(graph, live, layout),
        full,
        where.shared,
        where.local,
        where.local_bytes,
        where.symbols,
        where.parameters,
        tools,
        order,
        sited,
    )


def assembly(what: Plan) -> str:
    """The module of a kernel in LLVM's assembly, before any optimisation."""
    module = ir.Module("kernel")
    module.triple = _host()[0].triple
    make = {"lowest": WarpBuilder, "ipdom": StackBuilder}.get(what.order, ScheduledBuilder)
    warp = make(module, what).build()
    block.build(module, warp, what.local_bytes)
    return str(module)


def object_code(what: Plan) -> bytes:
    """The object file of a kernel."""
    level = 2 if all(tool.optimised for tool in what.tools) else 0
    return _compiled(assembly(what), what.graph.function.name, level)


def entry_code() -> bytes:
    """The object file of a native entry; the same for every kernel."""
    module = ir.Module("entry")
    module.triple = _host()[0].triple
    entry.build(module)
    return _compiled(str(module), "an entry", 2)


def _compiled(text: str, name: str, level: int) -> bytes:
    """An object file of LLVM's assembly, with the functions that it calls."""
    machine = _machine(level)
    try:
        module = llvm.parse_assembly(text)
        linked = set()
        for called in dict.fromkeys(re.findall(r'^declare .* @"([^"]+)"', text, re.MULTILINE)):
            for pattern, write in _TEXTS:
                if re.fullmatch(pattern, called) and (part := write(called)) not in linked:
                    linked.add(part)
                    module.link_in(llvm.parse_assembly(part))
        module.verify()
    except RuntimeError as cause:
        raise CompilerFailed(
            f"LLVM refused the code of {name}", detail=f"{cause}\n{text}"
        ) from cause
    with _LOCK:
        options = llvm.create_pipeline_tuning_options(speed_level=level)
        options.loop_vectorization = options.slp_vectorization = False
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        return bytes(machine.emit_object(module))


_LOCK = threading.Lock()
"""LLVM's pass managers and the linker are used by one thread at a time."""


@cache
def _host() -> tuple[Any, Any]:
    """The target machine and the linker of this process."""
    machine = _machine(2)
    target = llvm.Target.from_default_triple()
    return machine, llvm.create_lljit_compiler(
        target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features(), opt=2)
    )


@cache
def _machine(level: int) -> Any:
    """What makes machine code, with as much care as `level` says."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=features(),
        opt=level,
        reloc="pic",
        codemodel="jitdefault",
    )


@cache
def features() -> str:
    """What the host's processor can do, as LLVM names it."""
    return str(llvm.get_host_cpu_features().flatten())


def host_key() -> str:
    """What compiled code depends on besides the kernel."""
    names = llvm.get_host_cpu_name(), features(), llvm.llvm_version_info, llvmlite.__version__
    return ":".join(map(str, names))


@dataclass(frozen=True)
class Code:
    """Machine code that lies in memory; `launch` is the ABI's entry."""

    address: int
    launch: Any
    keep: Any


_loaded = 0


def load(code: bytes) -> Code:
    """Make an object file callable. Raises `RuntimeError` when it is no such file."""
    library = _linked(code, "launch")
    address = int(library["launch"])
    return Code(address, abi.ENTRY(address), (library, ctypes.c_void_p(address)))


def load_entry(code: bytes) -> tuple[int, entry.Facts, Any]:
    """A copy of the entry: its address, the facts that it reads, and what keeps both."""
    library = _linked(code, "entry", "facts")
    return int(library["entry"]), entry.Facts.from_address(int(library["facts"])), library


def _linked(code: bytes, *symbols: str) -> Any:
    """A library of the process, with the addresses of its symbols."""
    global _loaded
    with _LOCK:
        _loaded += 1
        builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for symbol in symbols:
            builder = builder.export_symbol(symbol)
        return builder.link(_host()[1], f"kernel{_loaded}")
