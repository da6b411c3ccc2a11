"""Stops the reference between instructions: steps, breakpoints, and the way on.

The stepper follows one warp, the first at the beginning; the others run when that one
waits, and are followed when they reach a breakpoint or when that one has ended. At a stop
`console` is asked; it says how to go on by `step`, `advance` or `go`, or raises `Quit`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from bedplate.simt.interpreter.base import Lanes
from bedplate.simt.interpreter.engine import Observer, WarpState
from bedplate.simt.module import Function, Instruction, Register, SourceLine

Reason = Literal["start", "step", "breakpoint", "interrupt", "fault"]


class Quit(Exception):
    """Whoever steps has seen enough."""


@dataclass(frozen=True)
class Stop:
    """Before an instruction: of which warp, for which lanes, and why."""

    warp: WarpState
    made: Instruction
    mask: int
    reason: Reason
    breakpoint: int | None = None
    switched: bool = False
    """Whether another warp is followed from now on."""


@dataclass
class Breakpoint:
    """A place in the text; `numbers` are the instructions before which it stops."""

    name: str
    numbers: frozenset[int]
    hits: int = 0


@dataclass
class Stepper(Observer):
    """Watches the reference. `written` are each warp's registers that hold a value."""

    console: Callable[[Stop], None]
    breakpoints: dict[int, Breakpoint] = field(default_factory=dict)
    written: dict[tuple[int, int], dict[int, Register]] = field(default_factory=dict)
    issues: int = 0
    interrupted: bool = False
    last: Stop | None = None
    _steps: int | None = 1
    _leave: SourceLine | None = None
    _followed: WarpState | None = None
    _here: tuple[WarpState, Instruction, int] | None = None

    def issued(self, warp: WarpState, made: Instruction, mask: int) -> None:
        """Stop here, or let it run."""
        self.issues += 1
        self._here = warp, made, mask
        if self._followed is None:
            self._stop(warp, made, mask, "start")
            return
        if self.interrupted:
            self.interrupted = False
            self._stop(warp, made, mask, "interrupt")
            return
        for number, point in self.breakpoints.items():
            if made.number in point.numbers:
                point.hits += 1
                self._stop(warp, made, mask, "breakpoint", number)
                return
        if warp is not self._followed and self._followed.live:
            return
        if self._leave is not None:
            if made.source is not None and not _same_line(made.source, self._leave):
                self._stop(warp, made, mask, "step")
        elif self._steps is not None:
            self._steps -= 1
            if self._steps <= 0:
                self._stop(warp, made, mask, "step")

    def wrote(self, warp: WarpState, made: Instruction, register: Register, bits: Lanes) -> None:
        """The register holds a value from now on."""
        self.written.setdefault((warp.block.number, warp.index), {})[register.index] = register

    def _stop(
        self,
        warp: WarpState,
        made: Instruction,
        mask: int,
        reason: Reason,
        point: int | None = None,
    ) -> None:
        switched = self._followed is not None and warp is not self._followed
        self._followed = warp
        self.last = Stop(warp, made, mask, reason, point, switched)
        self.console(self.last)

    def fault(self) -> Stop | None:
        """Where it was when the launch ended; None before the first instruction."""
        return None if self._here is None else Stop(*self._here, "fault")

    # The ways on.

    def step(self, count: int) -> None:
        """Stop again after `count` issues of this warp."""
        self._steps, self._leave = count, None

    def advance(self) -> None:
        """Stop again where the warp is at another line of the source; without, by one issue."""
        source = None if self.last is None else self.last.made.source
        self._steps, self._leave = 1, source

    def go(self) -> None:
        """Run to the next breakpoint."""
        self._steps = self._leave = None

    def follow(self, warp: WarpState) -> None:
        """Step this warp from now on."""
        self._followed = warp

    # Breakpoints.

    def add(self, name: str, function: Function) -> int:
        """A breakpoint at a label, a line of the PTX, or FILE:LINE; raises `ValueError`."""
        numbers = _places(name, function)
        number = max(self.breakpoints, default=0) + 1
        self.breakpoints[number] = Breakpoint(name, frozenset(numbers))
        return number


def _places(name: str, function: Function) -> set[int]:
    code = function.instructions
    if name in function.labels:
        place = function.labels[name]
        if place >= len(code):
            raise ValueError(f"behind the label {name} is no instruction")
        return {place}
    file, colon, line = name.rpartition(":")
    if not line.isdecimal():
        labels = ", ".join(list(function.labels)[:8])
        raise ValueError(f"{name!r} is no label and no line; labels: {labels or 'none'}")
    wanted = int(line)
    if colon:
        several = [
            made.number
            for made in code
            if made.source is not None
            and made.source.line == wanted
            and made.source.file.rpartition("/")[2] == file.rpartition("/")[2]
        ]
    else:
        several = [made.number for made in code if made.place.line >= wanted]
        nearest = min((code[number].place.line for number in several), default=0)
        several = [number for number in several if code[number].place.line == nearest]
    if not several:
        raise ValueError(f"no instruction of {function.name} is at {name}")
    # The first of each run of instructions of the line: a line is entered there. A line of
    # PTX has several when it calls.
    found = set(several)
    return {number for number in several if number - 1 not in found}


def _same_line(one: SourceLine, other: SourceLine) -> bool:
    return one.file == other.file and one.line == other.line
