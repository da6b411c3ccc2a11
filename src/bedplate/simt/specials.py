"""The registers that the machine sets, as a warp function has them at its entry.

Those of a thread are vectors only when the layout of blocks does not fix their pattern.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from bedplate.simt import abi, lanes
from bedplate.simt.emitter import Emitter
from bedplate.simt.lanes import I32
from bedplate.simt.scalar import FULL, LANES
from bedplate.simt.uniformity import Layout

_LANE_MASKS = {
    "%lanemask_eq": [1 << lane for lane in range(LANES)],
    "%lanemask_lt": [(1 << lane) - 1 for lane in range(LANES)],
    "%lanemask_le": [(2 << lane) - 1 for lane in range(LANES)],
    "%lanemask_gt": [FULL ^ ((2 << lane) - 1) for lane in range(LANES)],
    "%lanemask_ge": [FULL ^ ((1 << lane) - 1) for lane in range(LANES)],
}


def define(emitter: Emitter, layout: Layout) -> None:
    """Make them all, at the entry of the warp function."""
    builder, made = emitter.builder, emitter.specials
    for number, axis in enumerate("xyz"):
        made[f"%ntid.{axis}"] = emitter.field(emitter.launch, abi.Launch, "block", number)
        made[f"%nctaid.{axis}"] = emitter.field(emitter.launch, abi.Launch, "grid", number)
        made[f"%ctaid.{axis}"] = emitter.field(emitter.block, abi.Block, "ctaid", number)
    warp = emitter.field(emitter.warp, abi.Warp, "index")
    made["%warpid"] = warp
    made["%nwarpid"] = emitter.field(emitter.block, abi.Block, "warps")
    zero = ir.Constant(I32, 0)
    made |= {"%smid": zero, "%nsmid": ir.Constant(I32, 1), "%laneid": zero}
    for name, source in (
        ("%dynamic_smem_size", "dynamic_shared_bytes"),
        ("%total_smem_size", "shared_bytes"),
    ):
        value = emitter.field(emitter.launch, abi.Launch, source)
        made[name] = lanes.resized(builder, value, 32)
    for name, values in _LANE_MASKS.items():
        made[name] = ir.Constant(lanes.vector(I32), values)
    first = builder.mul(warp, ir.Constant(I32, LANES))
    for axis, shape in zip("xyz", layout.tid, strict=True):
        linear = first
        if shape is None:
            linear = builder.add(
                lanes.splat(builder, first),
                ir.Constant(lanes.vector(I32), list(range(LANES))),
            )
        made[f"%tid.{axis}"] = _thread(emitter, linear, axis)


def _thread(emitter: Emitter, linear: Any, axis: str) -> Any:
    """One coordinate of a thread, from its number in the block."""
    builder, made = emitter.builder, emitter.specials

    def size(name: str) -> Any:
        value = made[f"%ntid.{name}"]
        return lanes.splat(builder, value) if lanes.is_vector(linear) else value

    if axis == "x":
        return builder.urem(linear, size("x"))
    linear = builder.udiv(linear, size("x"))
    return builder.urem(linear, size("y")) if axis == "y" else builder.udiv(linear, size("y"))
