"""What can be looked at in a stopped warp: registers, lanes, memory; as lines of text.

Formats are gdb's: x, d, u, f. Values of lanes that do not run are in brackets. What does
not exist is a `ValueError` with one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bedplate.simt.interpreter.engine import Fault, WarpState
from bedplate.simt.interpreter.scheduled import Stack
from bedplate.simt.machine import Kernel
from bedplate.simt.module import Function, Instruction, Register, Special
from bedplate.simt.scalar import LANES, SCALARS
from bedplate.simt.stepper import Stop

Told = Iterator[str]
SHOWN = 4
"""Values of a register in a list of all."""
COLUMNS = 8
MOST = 1024
"""Units of memory in one look."""
UNITS = {"b": 1, "h": 2, "w": 4, "g": 8}
_PLACE = re.compile(r"(?:(shared|local|global):)?\s*([%\w.$]+)\s*(?:([+-])\s*(\w+))?")


def lanes(stop: Stop) -> str:
    """32 characters: `#` runs, `-` waits elsewhere, `.` has ended."""
    return "".join(
        "#" if stop.mask >> lane & 1 else "-" if stop.warp.live >> lane & 1 else "."
        for lane in range(LANES)
    )


def lane_of(stop: Stop, chosen: int | None) -> int:
    """The lane that is looked at."""
    return (stop.mask & -stop.mask).bit_length() - 1 if chosen is None else chosen


# Registers.


def register(function: Function, warp: WarpState, name: str) -> Register | Special:
    """A register by its name; where names repeat, the last that was declared."""
    named = [item for item in function.registers if item.name == name]
    if named:
        return named[-1]
    if name in warp.specials:
        return Special(name, SCALARS["u32"])
    raise ValueError(f"the kernel has no register {name!r}")


def _held(warp: WarpState, item: Register | Special) -> Any:
    return warp.specials[item.name] if isinstance(item, Special) else warp.registers[item.index]


def _written(bits: Any, item: Register | Special, form: str) -> list[str]:
    """The values of 32 lanes by a format, the type's own when there is none."""
    if form not in ("", "x", "d", "u", "f"):
        raise ValueError(f"the format {form!r} is none of x, d, u, f")
    kind, size = item.type.kind, bits.dtype.itemsize
    if kind == "pred":
        return [str(int(bit)) for bit in bits]
    if not form:
        form = {"float": "f", "unsigned": "u"}.get(kind, "x" if size == 8 else "d")
    return _formatted(bits, size, form)


def _formatted(bits: Any, size: int, form: str) -> list[str]:
    if form == "x":
        return [f"{int(bit):#x}" for bit in bits]
    if form == "f":
        if size < 2:
            raise ValueError("a byte is no float")
        return [f"{value:.9g}" for value in bits.view(f"f{size}").tolist()]
    return [str(value) for value in bits.view(f"{'i' if form == 'd' else 'u'}{size}").tolist()]


def values(stop: Stop, item: Register | Special, form: str) -> Told:
    """A register in 32 lanes."""
    shown = _written(_held(stop.warp, item), item, form)
    head = f"{item.name} .{item.type.name}"
    if len(set(shown)) == 1:
        yield f"{head} = {shown[0]} in all lanes"
        return
    yield head
    cells = [text if stop.mask >> lane & 1 else f"({text})" for lane, text in enumerate(shown)]
    width = max(map(len, cells))
    for first in range(0, LANES, COLUMNS):
        row = " ".join(f"{cell:>{width}}" for cell in cells[first : first + COLUMNS])
        yield f"  {first:>2}: {row}"


def registers(stop: Stop, several: Sequence[Register]) -> Told:
    """Each in one line."""
    if not several:
        yield "no register was written yet"
    for item in several:
        shown = _written(_held(stop.warp, item), item, "")
        text = f"{shown[0]} in all lanes"
        if len(set(shown)) > 1:
            text = f"{' '.join(shown[:SHOWN])} .. {shown[-1]}"
        yield f"{item.name:<8} .{item.type.name:<5} {text}"


# Lanes.


def mask(stop: Stop) -> Told:
    """Who runs, who waits where, who has ended; under `ipdom` the stack, its top first."""
    warp = stop.warp
    yield f"{lanes(stop)}  {stop.mask:08x} runs line {stop.made.place.line}"
    if isinstance(warp, Stack):
        yield "stack, the top first: block, where it ends, lanes"
        for block, join, part in reversed(warp.stack):
            meet = "the end" if join >= len(warp.blocks) else _named(warp, join)
            yield f"  {_named(warp, block)} until {meet}: {part & warp.live:08x}"
        return
    for block, part in sorted(warp.pending.items()):
        yield f"{_picture(part)}  {part:08x} waits to run {_named(warp, block)}"
    for block, part in sorted(warp.held.items()):
        yield f"{_picture(part)}  {part:08x} waits at a barrier before {_named(warp, block)}"


def _picture(part: int) -> str:
    return "".join("#" if part >> lane & 1 else " " for lane in range(LANES))


def _named(warp: WarpState, block: int) -> str:
    """A block by its first line and label."""
    graph = warp.grid.graph
    code = graph.blocks[block].all
    if not code:
        return f"block {block} (where a loop's lanes meet)"
    labels = [name for name, at in graph.function.labels.items() if at == code[0].number]
    return f"line {code[0].place.line}" + (f" ({labels[0]})" if labels else "")


def warps(stop: Stop) -> Told:
    """Where the warps of the block are."""
    for warp in stop.warp.block.warps:
        if warp is stop.warp:
            yield f"* warp {warp.index}  {warp.live:08x}  runs line {stop.made.place.line}"
        elif not warp.live:
            yield f"  warp {warp.index}  {warp.live:08x}  has ended"
        elif warp.arrived:
            yield f"  warp {warp.index}  {warp.live:08x}  waits at barrier {warp.barrier}"
        else:
            pending = warp.stack[-1][0] if isinstance(warp, Stack) else min(warp.pending)
            yield f"  warp {warp.index}  {warp.live:08x}  is to run {_named(warp, pending)}"


# Memory.


def memory(kernel: Kernel, stop: Stop, lane: int, form: str, text: str) -> Told:
    """`count` values at a place, by gdb's count, format and unit such as `8xw`."""
    parts = re.fullmatch(r"(\d{0,6})([xduf]?)([bhwg]?)", form)
    if parts is None:
        raise ValueError(f"x/{form} is not a count, one of x d u f, and one of b h w g")
    count = int(parts[1] or 1)
    if not 1 <= count <= MOST:
        raise ValueError(f"{count} units are not between 1 and {MOST}")
    kind, size = parts[2] or "x", UNITS[parts[3] or "w"]
    space, address = _place(kernel, stop.warp, lane, text)
    row = max(COLUMNS * 4 // max(size, 4), 1)
    for first in range(0, count, row):
        cells = [
            _formatted(_read(stop, space, lane, address + size * n, size), size, kind)[0]
            for n in range(first, min(first + row, count))
        ]
        yield f"{space} {address + size * first:#x}:  {'  '.join(cells)}"


def _read(stop: Stop, space: str, lane: int, address: int, size: int) -> Any:
    made: Instruction = stop.made
    try:
        found = stop.warp.bytes(made, space, lane, address, size)
    except Fault as fault:
        what = "not aligned" if fault.code.name == "MISALIGNED" else f"not in {space} memory"
        raise ValueError(f"address {address:#x} is {what}") from None
    return np.frombuffer(bytes(found), f"u{size}")


def _place(kernel: Kernel, warp: WarpState, lane: int, text: str) -> tuple[str, int]:
    """A space and an address."""
    found = _PLACE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no place; write an address, %rd4+16, or shared:0")
    space, word, sign, number = found.groups()
    moved = _whole(number) if number else 0
    offset = -moved if sign == "-" else moved
    places = kernel.places
    if word.startswith("%"):
        item = register(kernel.function, warp, word)
        base = int(_held(warp, item)[lane])
    elif word in places.shared:
        space, base = space or "shared", places.shared[word]
    elif word in places.local:
        space, base = space or "local", places.local[word]
    elif word in kernel.loaded.symbols:
        base = kernel.loaded.symbols[word]
    else:
        base = _whole(word)
    return space or "generic", (base + offset) % (1 << 64)


def _whole(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise ValueError(f"{text!r} is no number, register or variable") from None
