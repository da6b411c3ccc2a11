"""The head that small kernels of the tests have in common."""

from __future__ import annotations

VERSION = ".version 9.0\n.target sm_90\n.address_size 64\n"
REGISTERS = """.reg .pred %p<9>;
.reg .b16 %h<4>;
.reg .b32 %r<40>;
.reg .f32 %f<40>;
.reg .f64 %d<4>;
.reg .b64 %rd<20>;
"""


def head(parameters: str, shared: int = 0) -> str:
    """A kernel `k` up to its first instruction, which is line 13, or 12 without `tile`.

    `parameters` are words such as `cells:u64`; `shared` bytes are at `tile`.
    """
    pairs = (word.split(":") for word in parameters.split())
    listed = ", ".join(f".param .{kind} {name}" for name, kind in pairs)
    tile = f".shared .align 16 .b8 tile[{shared}];\n" if shared else ""
    return f"{VERSION}.visible .entry k({listed})\n{{\n{REGISTERS}{tile}"


def whole(start: str, *lines: str) -> str:
    """A head and what follows it, to the end of the kernel."""
    return "\n".join([start.rstrip("\n"), *lines, "ret;", "}\n"])
