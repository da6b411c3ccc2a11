"""The frame of a kernel whose threads each take a tuple of operands and give results.

A body finds its operands in `%i0, ...`, their addresses in `%p0, ...`, and leaves results in
`%o0, ...`; `%q0, ...` are the addresses where results go. `%t` is the thread of the grid, `%l`
that of its block of 256, `%k` its lane. `tile` are 32 bytes of shared memory a thread, `%s`
the address of this thread's own 16 of the first half.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.simt import tuples

BLOCK = 256
_NUMBER = iter(range(1 << 30))
Program = tuple[str, dict[str, Any]]


def register(kind: str) -> str:
    """The type of a register for values of a kind; there are none of 8 bits."""
    if kind in ("f16", "bf16"):
        return "b16"
    return f"{kind[0]}16" if tuples.bits(kind) == 8 else kind


def program(
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    body: Sequence[str],
    *,
    declared: Sequence[str] = (),
    scratch: Sequence[int] = (),
    before: str = "",
    tolerance: float = 0,
) -> Program:
    """A kernel and its line of the manifest; results in `scratch` are written by the body."""
    symbol = f"w{next(_NUMBER)}"
    count = len(inputs) + len(outputs)
    lines = [".reg .b32 %t, %l, %k, %c, %s;", ".reg .b64 %rd<8>;", ".reg .pred %act, %own;"]
    lines += [f".reg .b32 %r<8>;\n.reg .b64 %p<{count + 1}>, %q<{count + 1}>;", *declared]
    lines += [f".reg .{register(kind)} %i{n};" for n, kind in enumerate(inputs)]
    lines += [f".reg .{register(kind)} %o{n};" for n, kind in enumerate(outputs)]
    lines += [".shared .align 32 .b8 tile[8192];", "mov.u32 %l, %tid.x;", "mov.u32 %c, %ctaid.x;"]
    lines += ["mad.lo.u32 %t, %c, 256, %l;", "and.b32 %k, %l, 31;"]
    lines += ["mov.u32 %s, tile;", "mad.lo.u32 %s, %l, 16, %s;"]
    for place, kind in enumerate((*inputs, *outputs)):
        number = place if place < len(inputs) else place - len(inputs)
        address = f"%{'p' if place < len(inputs) else 'q'}{number}"
        lines.append(f"ld.param.u64 {address}, [a{place}];")
        lines.append(f"mad.wide.u32 {address}, %t, {tuples.bits(kind) // 8}, {address};")
    for place, kind in enumerate(inputs):
        lines.append(f"ld.global.{kind} %i{place}, [%p{place}];")
    lines += body
    for place, kind in enumerate(outputs):
        if place not in scratch:
            lines.append(f"st.global.{kind} [%q{place}], %o{place};")
    listed = ", ".join(f".param .u64 a{place}" for place in range(count))
    text = f"{before}.visible .entry {symbol}({listed})\n" + "\n".join(
        ["{", *lines, "ret;", "}", ""]
    )
    told: dict[str, Any] = {"name": name, "symbol": symbol, "inputs": list(inputs)}
    told |= {"outputs": list(outputs), "divides": False, "approximate": False, "least": BLOCK}
    told["count"] = 8 * tuples.CHUNK
    if tolerance:
        told |= {"tolerance": tolerance, "count": 2 * tuples.CHUNK}
    return text, told


def guarded(mask: int) -> list[str]:
    """Set `%act` in the lanes of a mask."""
    return [
        f"mov.u32 %r0, {mask:#x};", "shr.u32 %r0, %r0, %k;", "and.b32 %r0, %r0, 1;",
        "setp.ne.u32 %act, %r0, 0;",
    ]  # fmt: skip
