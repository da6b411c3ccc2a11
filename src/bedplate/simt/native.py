"""PTX as native entries of the HAL: compiled when a module is loaded, called without Python.

A kernel is compiled twice, since a launch cannot come back to compile: for blocks whose
warps are pieces of a line (the first size is a multiple of 32), and for every other. Both
look for each access's window among those that the launch is given. The module's variables
lie in memory of its own.
"""

from __future__ import annotations

import ctypes
import math
import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from bedplate.core.launch import Triple
from bedplate.simt import graph, stored
from bedplate.simt.module import Function, Module
from bedplate.simt.parser import parse
from bedplate.simt.schedule import CUTS, Order, waits
from bedplate.simt.uniformity import LANE, UNIFORM, Layout

MOST_THREADS = 1024
"""Threads of a block."""
MOST_SHARED = 227 << 10
"""Bytes of shared memory of a block, as from sm_90 on."""
ALIGNMENT = 256
_LINE = Layout((LANE, UNIFORM, UNIFORM))
_ANY = Layout((None, None, None))


@dataclass(frozen=True)
class NativeKernel:
    """A kernel: the address of its entry, and what it asks of launches.

    `arguments` are sizes in bytes; they are packed as the HAL packs them (`packed`).
    """

    entry: int
    arguments: Sequence[int]
    parameter_bytes: int
    shared_bytes: int
    most_threads: int
    block: Triple | None


@dataclass(frozen=True)
class NativeKernels:
    """Kernels by name; `keep` must live while any of them may run."""

    kernels: Mapping[str, NativeKernel]
    keep: Sequence[Any]


def packed(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Where the HAL puts arguments of those sizes, and how many bytes they take together.

    Each is aligned to its size, rounded down to a power of two, up to 8.
    """
    offsets, at = [], 0
    for size in sizes:
        alignment = 1 << min(size.bit_length() - 1, 3)
        at = -(-at // alignment) * alignment
        offsets.append(at)
        at += size
    return offsets, at


def native_kernels(text: str, name: str = "<ptx>") -> NativeKernels:
    """Compile every kernel of a PTX text. Raises `PtxInvalid`, `CompilerFailed`."""
    module = parse(text, name)
    storage, digest = _Storage(module), stored.digest(text)
    keep: list[Any] = [storage]
    kernels = {
        kernel: _kernel(module, module.functions[kernel], storage, digest, keep)
        for kernel in module.kernels
    }
    return NativeKernels(kernels, keep)


class _Storage:
    """The variables of a module in the host's memory, where their addresses are the device's."""

    def __init__(self, module: Module) -> None:
        own = [v for function in module.functions.values() for v in function.variables]
        every = [v for v in (*module.variables.values(), *own) if v.space in ("global", "const")]
        offsets: dict[str, int] = {}
        size = 0
        for variable in every:
            size = -(-size // ALIGNMENT) * ALIGNMENT
            offsets[variable.name] = size
            size += max(variable.size, 1)
        self.size = size
        self._map = mmap.mmap(-1, max(size, 1))
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        for variable in every:
            start = offsets[variable.name]
            if variable.initial:
                self._map[start : start + len(variable.initial)] = variable.initial
        self.addresses = {name: self.base + offset for name, offset in offsets.items()}


def _kernel(
    module: Module, function: Function, storage: _Storage, digest: str, keep: list[Any]
) -> NativeKernel:
    from bedplate.simt import compiler

    sizes = [parameter.size for parameter in function.parameters]
    offsets, parameter_bytes = packed(sizes)
    named = zip(function.parameters, offsets, strict=True)
    places = replace(
        compiler.places(function, module.variables),
        parameters={parameter.name: offset for parameter, offset in named},
        parameter_bytes=parameter_bytes,
    )

    def make(layout: Layout, full: bool) -> tuple[Order, bytes]:
        made = graph.build(function)
        order: Order = "lowest"
        plan = compiler.plan(made, places, layout, full=full, sited=True)
        if waits(made, plan.uniformity):
            order = "its"
            cut = graph.build(function, CUTS[order])
            plan = compiler.plan(cut, places, layout, full=full, order=order, sited=True)
        return order, compiler.object_code(plan)

    def code(layout: Layout, *, full: bool) -> int:
        parts = digest, function.name, repr(layout), str(full), "native"
        loaded = compiler.load(stored.code(parts, partial(make, layout, full))[1])
        keep.append(loaded)
        return loaded.address

    entry, facts, library = compiler.load_entry(_entry_code())
    names = sorted(places.symbols, key=places.symbols.__getitem__)
    symbols = (ctypes.c_uint64 * max(len(names), 1))(*(storage.addresses[n] for n in names))
    texts, starts = _texts(function)
    title = ctypes.create_string_buffer(function.name.encode())
    keep += [library, symbols, texts, starts, title]
    facts.line, facts.any = code(_LINE, full=True), code(_ANY, full=False)
    facts.symbols = ctypes.addressof(symbols)
    facts.storage.base = facts.storage.host = storage.base
    facts.storage.size = storage.size
    facts.shared_bytes = places.shared_bytes
    facts.name, facts.texts = ctypes.addressof(title), ctypes.addressof(texts)
    facts.offsets, facts.instructions = ctypes.addressof(starts), len(function.instructions)
    most = function.limits.get("maxntid")
    required = function.limits.get("reqntid")
    return NativeKernel(
        entry,
        sizes,
        parameter_bytes,
        places.shared_bytes,
        min(MOST_THREADS, math.prod(most)) if most else MOST_THREADS,
        _triple(required) if required else None,
    )


@cache
def _entry_code() -> bytes:
    from bedplate.simt import compiler

    return stored.code(("entry",), lambda: ("lowest", compiler.entry_code()))[1]


def _triple(sizes: Sequence[int]) -> Triple:
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _texts(function: Function) -> tuple[Any, Any]:
    """Line and name of every instruction, terminated, and where each begins."""
    data, offsets, known = bytearray(), [], dict[bytes, int]()
    for made in function.instructions:
        text = f"{made.place.line} {made.text}".encode() + b"\0"
        if text not in known:
            known[text] = len(data)
            data += text
        offsets.append(known[text])
    table = (ctypes.c_uint32 * max(len(offsets), 1))(*offsets)
    return ctypes.create_string_buffer(bytes(data), len(data) + 1), table
