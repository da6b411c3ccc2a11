"""What is to be compiled, and what was made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from llvmlite import ir

from bedplate.simt.graph import Graph
from bedplate.simt.liveness import Liveness
from bedplate.simt.tool import Tool
from bedplate.simt.uniformity import Uniformity


@dataclass(frozen=True)
class Plan:
    """What is to be compiled: a kernel, as analysed, and the places of its variables."""

    graph: Graph
    liveness: Liveness
    uniformity: Uniformity
    full: bool
    """Whether every warp has 32 threads."""
    shared_offsets: Mapping[str, int]
    local_offsets: Mapping[str, int]
    local_bytes: int
    symbols: Mapping[str, int]
    parameter_offsets: Mapping[str, int]
    tools: Sequence[Tool] = ()
    order: str = "lowest"
    """Which lanes run next; see `schedule`."""
    sited: bool = False
    """Whether each access looks for its window and remembers it, rather than try the first."""


@dataclass
class WarpFunction:
    """A warp function that was made, and how much room a warp needs between two runs."""

    function: ir.Function
    state_bytes: int
    barriers: bool
