"""The lockstep trace: one row for each instruction that a warp issues.

    block 0 warp 1  0000ffff     23  @%p1 bra DONE;  (t.cu:4)

A row knows three sets of lanes: `mask`, that the instruction was issued for; `ran`, those of
them whose guard holds (of a branch: that go); and `live`, those of the warp that have not
ended. Lanes that are live and not in the mask wait at another block. The reference makes
the rows, in the order in which it runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bedplate.simt.errors import LaunchFailed
from bedplate.simt.interpreter.engine import Observer, WarpState
from bedplate.simt.machine import Kernel
from bedplate.simt.module import Instruction
from bedplate.simt.reference import Reference
from bedplate.simt.sources import Sources

TIMELINE = 4096
"""Issues of a profile's timeline: what fits a page that one can look through."""


@dataclass(frozen=True)
class Issue:
    """One row; `block` and `warp` count from 0, `number` is the row's."""

    number: int
    block: int
    warp: int
    made: Instruction
    mask: int
    ran: int
    live: int


class Tracer(Observer):
    """Watches the reference and hands on each issue; may raise to end the run."""

    def __init__(self, take: Callable[[Issue], None]) -> None:
        self.take = take
        self.number = 0

    def issued(self, warp: WarpState, made: Instruction, mask: int) -> None:
        """A row."""
        block = warp.block.number
        ran = mask & warp.guarded(made)
        self.take(Issue(self.number, block, warp.index, made, mask, ran, warp.live))
        self.number += 1


def row_text(issue: Issue, sources: Sources) -> str:
    """A row for people."""
    made = issue.made
    place = made.source
    source = "" if place is None else f"  ({place.file}:{place.line})"
    head = f"block {issue.block} warp {issue.warp}  {issue.mask:08x}"
    return f"{head}  {made.place.line:>5}  {sources.statement(made)}{source}"


def row_json(issue: Issue, sources: Sources) -> str:
    """A row as one line of JSON; masks are numbers, bit n is lane n."""
    made = issue.made
    place = made.source
    return json.dumps(
        {
            "issue": issue.number,
            "block": issue.block,
            "warp": issue.warp,
            "line": made.place.line,
            "file": None if place is None else place.file,
            "source_line": None if place is None else place.line,
            "text": sources.statement(made),
            "mask": issue.mask,
            "ran": issue.ran,
            "live": issue.live,
        }
    )


@dataclass(frozen=True)
class Timeline:
    """The beginning of a block; `cut` says that it went on."""

    issues: Sequence[Issue]
    cut: bool

    def document(self) -> Mapping[str, Any]:
        """As a profile keeps it: warp, line of the PTX, and three masks for each issue."""
        rows = [[i.warp, i.made.place.line, i.mask, i.ran, i.live] for i in self.issues]
        return {"block": 0, "cut": self.cut, "issues": rows}


class _Enough(Exception):
    """The timeline is as long as it may be."""


def timeline(
    kernel: Kernel,
    grid_shape: Any,
    block_shape: Any,
    values: Sequence[Any],
    *,
    dynamic_shared: int = 0,
    most: int = TIMELINE,
) -> Timeline:
    """The first issues of the first block; memory is afterwards what it was before.

    A fault ends it without a word: who launches the kernel will be told.
    """
    found: list[Issue] = []
    cut = False

    def take(issue: Issue) -> None:
        if len(found) >= most:
            raise _Enough
        found.append(issue)

    reference = Reference(kernel, grid_shape, block_shape, values, dynamic_shared=dynamic_shared)
    spans = kernel.machine.memory.spans()
    before = [span.copy() for _, span in spans]
    try:
        reference.run(Tracer(take), blocks=1)
    except _Enough:
        cut = True
    except LaunchFailed:
        pass
    finally:
        for (_, span), content in zip(spans, before, strict=True):
            span[:] = content
    return Timeline(found, cut)
