"""From device addresses to the host's, lane by lane: the slow way of every access.

These are calls of functions of the compiled module (`routine`), one for each space and
size, which are linked in when a kernel calls them. The quick way (`lowering.memory`) has
one check for the warp and comes here when that fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from bedplate.simt import abi, lanes
from bedplate.simt.lanes import I1, I32, I64
from bedplate.simt.scalar import LANES, SCALARS

if TYPE_CHECKING:
    from bedplate.simt.emitter import Emitter
    from bedplate.simt.lowering.memory import Access

ADDRESS = {32: SCALARS["u32"], 64: SCALARS["u64"]}


def window(e: Emitter, space: str) -> tuple[Any, Any, Any]:
    """Where a space begins, its size, and the host's address: computed once, at entry."""
    key = f"window.{'shared' if space == 'shared' else 'local' if space == 'local' else 'global'}"
    if key not in e.windows:
        kept, e.builder = e.builder, e.entry
        zero = ir.Constant(I64, 0)
        if space == "shared":
            size = e.field(e.launch, abi.Launch, "shared_bytes")
            host = e.builder.ptrtoint(e.field(e.block, abi.Block, "shared"), I64)
            e.windows[key] = zero, size, host
        elif space == "local":
            host = e.builder.ptrtoint(e.field(e.warp, abi.Warp, "local"), I64)
            e.windows[key] = zero, ir.Constant(I64, e.local_bytes), host
        else:
            table = e.field(e.launch, abi.Launch, "windows")
            base = e.field(table, abi.Window, "base")
            size = e.field(table, abi.Window, "size")
            host = e.builder.ptrtoint(e.field(table, abi.Window, "host"), I64)
            e.windows[key] = base, size, host
        e.builder = kept
    return e.windows[key]


def likely(builder: ir.IRBuilder, condition: Any, yes: Any, no: Any) -> None:
    """A branch that nearly always goes to `yes`."""
    builder.cbranch(condition, yes, no).set_weights([2000, 1])


def first_lane(builder: ir.IRBuilder, mask: Any) -> Any:
    """The lowest lane of a mask; of none, lane 0."""
    never = ir.Constant(I1, 0)
    function = lanes.declared(builder.module, "llvm.cttz.i32", I32, [mask, never])
    return builder.and_(builder.call(function, [mask, never]), ir.Constant(I32, LANES - 1))


def load(e: Emitter, access: Access, addresses: Any, mask: Any) -> list[Any]:
    """All elements of the active lanes; what other lanes get means nothing."""
    _call(e, "load", access, addresses, mask)
    kind = lanes.vector(lanes.integer(access.bits))
    return [
        e.builder.load(_part(e, access, number), typ=kind, align=16)
        for number in range(access.count)
    ]


def store(e: Emitter, access: Access, addresses: Any, mask: Any, values: Sequence[Any]) -> None:
    """Store the active lanes, the highest last."""
    _fill(e, access, values)
    _call(e, "store", access, addresses, mask)


def atomic(
    e: Emitter, access: Access, operation: str, addresses: Any, mask: Any, values: Sequence[Any]
) -> Any:
    """Change each lane's place in turn; the old values of the active lanes."""
    _fill(e, access, values)
    _call(e, "atomic", access, addresses, mask, f".{operation}")
    kind = lanes.vector(lanes.integer(access.bits))
    return e.builder.load(_part(e, access, 2), typ=kind, align=16)


def scatter(e: Emitter, access: Access, hosts: Any, mask: Any, values: Sequence[Any]) -> None:
    """Store to addresses of the host that were checked already."""
    _fill(e, access, values)
    arguments = [hosts, mask, e.scratch]
    name = f"scatter.host.{access.bits}x{access.count}"
    e.builder.call(lanes.declared(e.module, name, ir.VoidType(), arguments), arguments)


def _part(e: Emitter, access: Access, number: int) -> Any:
    offset = ir.Constant(I64, number * LANES * access.bits // 8)
    return e.builder.gep(e.scratch, [offset], source_etype=lanes.I8)


def _fill(e: Emitter, access: Access, values: Sequence[Any]) -> None:
    for number, value in enumerate(values):
        e.builder.store(value, _part(e, access, number), align=16)


def _call(
    e: Emitter, operation: str, access: Access, addresses: Any, mask: Any, more: str = ""
) -> None:
    number = ir.Constant(I32, access.made.number)
    arguments = [e.launch, e.block, e.warp, number, addresses, mask, e.scratch]
    name = f"{operation}.{access.space}.{access.bits}x{access.count}.{e.local_bytes}{more}"
    faulted_unless(e, e.builder.call(lanes.declared(e.module, name, I32, arguments), arguments))


def faulted_unless(e: Emitter, done: Any) -> None:
    """Leave the warp function when a function of the module has filled in a fault."""
    yes = e.function.append_basic_block("resolved")
    no = e.function.append_basic_block("fault")
    likely(e.builder, e.builder.icmp_unsigned("!=", done, ir.Constant(I32, 0)), yes, no)
    ir.IRBuilder(no).ret(ir.Constant(I32, abi.FAULTED))
    e.builder = ir.IRBuilder(yes)
