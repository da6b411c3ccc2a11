"""Runs a launch under checks: block by block, each looked at when it has run.

One host thread runs the blocks in order, so the findings of a launch are the same on every
run. A fault ends the launch as it does without checks; what was seen until then is told.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bedplate.core.launch import Triple
from bedplate.simt import abi, arguments
from bedplate.simt.checks import memory, race
from bedplate.simt.checks.clocks import Clocks, Waiting
from bedplate.simt.checks.finding import CHECKS, SCHEMA, Check, Finding, Findings, Level, Site
from bedplate.simt.checks.log import EventLog, LoggingTool
from bedplate.simt.checks.rows import GLOBAL, SHARED, SPACES, Rows, Traits, rows
from bedplate.simt.errors import LaunchFailed, LaunchInvalid
from bedplate.simt.machine import DEFAULT_BUDGET, Kernel, LaunchShape
from bedplate.simt.module import Instruction
from bedplate.simt.scalar import LANES
from bedplate.simt.uniformity import Layout

_ADVICE = {
    "out-of-bounds": "Guard the access by the size of the array, or allocate more",
    "use-after-free": "Free the array after the last launch that uses it",
    "misaligned": "An access of N bytes needs an address that is a multiple of N",
    "uninitialized": "Write it before it is read; what is read here is junk",
}


@dataclass(frozen=True)
class Checked:
    """What was found; `failure` when the launch also ended in a fault.

    `partial`: a block had more accesses than are kept, so its end was not looked at.
    """

    findings: Sequence[Finding]
    failure: LaunchFailed | None
    partial: bool

    @property
    def bad(self) -> bool:
        """Whether there is any error or warning."""
        return self.failure is not None or any(f.level != "info" for f in self.findings)

    @property
    def summary(self) -> str:
        """The last line: how many errors, as compute-sanitizer says it."""
        errors = sum(finding.level == "error" for finding in self.findings)
        warnings = sum(finding.level == "warning" for finding in self.findings)
        text = f"========= ERROR SUMMARY: {errors} errors, {warnings} warnings"
        return text + (", blocks only in part" if self.partial else "")

    def document(self, kernel: str) -> Mapping[str, Any]:
        """All of it as JSON."""
        failure = None if self.failure is None else str(self.failure)
        return {
            "schema": SCHEMA,
            "kernel": kernel,
            "partial": self.partial,
            "failure": failure,
            "findings": [asdict(finding) for finding in self.findings],
        }


def chosen(text: str) -> tuple[Check, ...]:
    """The checks of a list such as `memory,race` or `all`; raises `LaunchInvalid`."""
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if word not in (*CHECKS, "all"):
            raise LaunchInvalid(
                f"there is no check {word!r}", remedy=f"choose of {', '.join(CHECKS)}, all"
            )
    return tuple(check for check in CHECKS if check in words or "all" in words)


def check(
    kernel: Kernel,
    grid_shape: Any,
    block_shape: Any,
    values: Sequence[Any],
    *,
    checks: Iterable[Check] = CHECKS,
    dynamic_shared: int = 0,
    budget: int = DEFAULT_BUDGET,
) -> Checked:
    """Run a launch and look at all that it does; memory ends as the launch leaves it."""
    shape = LaunchShape.of(kernel, grid_shape, block_shape, dynamic_shared)
    places = kernel.places
    parameters = arguments.pack(kernel.function, places.parameters, places.parameter_bytes, values)
    layout, full = Layout.of(shape.block), shape.threads % LANES == 0
    code, _ = kernel.code(layout, full=full, tool=LoggingTool)
    launch, record = kernel.launches(shape, parameters, budget)()
    log = EventLog()
    launch.trace = ctypes.addressof(log.trace)
    examiner = _Examiner(kernel, shape, frozenset(checks))
    failure, partial = None, False
    for number in range(shape.blocks):
        log.clear()
        status = code.launch(ctypes.addressof(launch), number, 1)
        partial |= log.full
        examiner.block(number, log.events, abi.Code(-status) if status else None)
        if status:
            failure = kernel.failure(shape, record)
            examiner.ended(failure, record, number)
            break
    return Checked(examiner.findings.all, failure, partial)


class _Examiner:
    """Looks at one block after the other."""

    def __init__(self, kernel: Kernel, shape: LaunchShape, checks: frozenset[Check]) -> None:
        self.kernel, self.shape, self.checks = kernel, shape, checks
        self.instructions = kernel.function.instructions
        self.traits = Traits.of(self.instructions)
        self.granules = (
            self.traits.granule(0),
            self.traits.granule(1),
            self.traits.granule(2),
        )
        self.findings = Findings(kernel.name)
        memory = kernel.machine.memory
        self.shared_bytes = kernel.places.shared_bytes + shape.dynamic_shared
        self.ordering = frozenset(m.number for m in self.instructions if m.opcode == "bar")
        self.converged = kernel.order(Layout.of(shape.block)) == "lowest"
        self.fenced = any(m.opcode in ("membar", "fence") for m in self.instructions)
        size, granule = memory.used, self.granules[GLOBAL]
        self.shadow = race.Shadow(abi.GLOBAL_BASE, size, granule, self.fenced)

    def block(self, number: int, events: Any, fault: abi.Code | None) -> None:
        """All checks of a block's log."""
        every = rows(events, self.traits)
        clocks = Clocks(self.shape.threads, self.ordering, self.converged)
        clocks.play(events)
        if "memory" in self.checks:
            self._memory(every, number)
        if "sync" in self.checks:
            self._sync(clocks, number, fault)
        if "init" in self.checks:
            self._init(every, number)
        if "race" in self.checks:
            self._race(every, clocks, number)

    # Telling.

    def ended(self, failure: LaunchFailed, record: Any, block: int) -> None:
        """A launch that did not end well is an error, also where no check saw why."""
        if any(finding.level == "error" for finding in self.findings.all):
            return
        known = record.instruction < len(self.instructions)
        lane = max((record.mask & -record.mask).bit_length() - 1, 0)
        site = self._site(record.instruction if known else 0, block, record.warp * LANES + lane)
        fault = failure.fault
        fitting: Check = "sync" if fault is None else "memory"
        # Told under a check that was asked for: reports have no other place.
        told = fitting if fitting in self.checks else next(c for c in CHECKS if c in self.checks)
        self.findings.add(
            Finding(
                told,
                failure.status if fault is None else fault.kind,
                "error",
                failure.message if fault is None else fault.message,
                self.kernel.name,
                site,
                "The launch ended here; what is behind it did not run",
                None if fault is None else fault.address,
            )
        )

    def _site(self, instruction: int, block: int, thread: int) -> Site:
        made = self.instructions[instruction]
        place = made.source
        name = self.kernel.loaded.module.name
        return Site(
            name if place is None else place.file,
            made.place.line if place is None else place.line,
            made.place.line,
            made.text,
            _triple(block, self.shape.grid),
            _triple(thread, self.shape.block),
        )

    def _row(self, every: Rows, row: int, block: int) -> Site:
        return self._site(int(every.instruction[row]), block, int(every.thread[row]))

    def _add(
        self,
        check: Check,
        kind: str,
        level: Level,
        message: str,
        site: Site,
        advice: str,
        **more: Any,
    ) -> None:
        self.findings.add(
            Finding(check, kind, level, message, self.kernel.name, site, advice, **more)
        )

    # The checks.

    def _memory(self, every: Rows, block: int) -> None:
        for bad in memory.invalid(every, self.kernel.machine.memory, self.shared_bytes):
            size, what = int(every.size[bad.row]), _doing(every, bad.row)
            self._add(
                "memory",
                bad.kind,
                "error",
                f"Invalid __{_space(every, bad.row)}__ {what} of size {size} bytes. {bad.detail}",
                self._row(every, bad.row, block),
                _ADVICE[bad.kind],
                address=int(every.address[bad.row]),
                count=bad.count,
            )

    def _init(self, every: Rows, block: int) -> None:
        device = self.kernel.machine.memory
        found = [
            *memory.unwritten(every, self.granules, self.kernel.places.local_bytes),
            *memory.unwritten_global(every, device, self.granules[GLOBAL]),
        ]
        for bad in found:
            size = int(every.size[bad.row])
            self._add(
                "init",
                bad.kind,
                "error",
                f"Uninitialized __{_space(every, bad.row)}__ memory read of size {size} bytes",
                self._row(every, bad.row, block),
                _ADVICE[bad.kind],
                address=int(every.address[bad.row]),
                count=bad.count,
            )

    def _race(self, every: Rows, clocks: Clocks, block: int) -> None:
        order = clocks.finish(every)
        for space in (SHARED, GLOBAL):
            chosen = (every.space == space).nonzero()[0]
            for found in race.within(order, chosen, self.granules[space], fenced=self.fenced):
                self._told(every, found, block)
        for found in self.shadow.between(every, block):
            self._told(every, found, block)

    def _told(self, every: Rows, found: race.Race, block: int) -> None:
        other = self._row(every, found.other, block)
        space = _space(every, found.other)
        second = _doing(every, found.other)
        if found.block is not None:
            one = self._site(found.instruction, found.block, found.thread)
            first, kind = "write" if found.wrote else "read", "blocks"
            between = "threads of different blocks"
            advice = "Barriers do not order blocks: use atomics, or another launch"
        else:
            one, first = self._row(every, found.one, block), _doing(every, found.one)
            same = every.warp[found.one] == every.warp[found.other]
            kind, between = ("lanes", "lanes of one warp") if same else ("warps", "warps")
            advice = "Put __syncthreads() between the two, or use an atomic"
            if same:
                advice = "Put __syncwarp() between the two: lanes need not run in step"
        if found.same_value:
            advice = f"Both write the same value. {advice}"
        self._add(
            "race",
            kind,
            "info" if found.same_value else "error",
            f"Race between {first} and {second} access in __{space}__ memory by {between}",
            other,
            advice,
            address=int(every.address[found.other]),
            other=one,
            count=found.count,
        )

    def _sync(self, clocks: Clocks, block: int, fault: abi.Code | None) -> None:
        for parted in clocks.parted:
            waiting = parted.waiting
            if not _aligned(self.instructions[waiting.instruction]):
                continue
            here, all_here = waiting.mask.bit_count(), parted.live.bit_count()
            self._at(
                "divergent-warp",
                "error",
                f"Barrier error detected. Divergent thread(s) in warp: {here} of {all_here} "
                f"threads of warp {waiting.warp} at barrier {waiting.number}",
                waiting,
                block,
            )
        parts = {parted.waiting.instruction for parted in clocks.parted}
        for released in clocks.released:
            gone = sum(mask.bit_count() for mask in released.ended)
            first = released.waiting[0]
            if gone and not first.count and first.instruction not in parts:
                here = sum(one.mask.bit_count() for one in released.waiting)
                self._at(
                    "divergent-block",
                    "warning",
                    f"Barrier error detected. Divergent thread(s) in block: {here} of "
                    f"{self.shape.threads} threads at barrier {first.number}, {gone} had ended",
                    first,
                    block,
                )
        if clocks.stuck and fault is abi.Code.BARRIER:
            first = clocks.stuck[0]
            count = sum(one.mask.bit_count() for one in clocks.stuck if one.number == first.number)
            self._at(
                "deadlock",
                "error",
                f"Barrier error detected. Deadlock: {count} of {self.shape.threads} threads at "
                f"barrier {first.number}",
                first,
                block,
                self._states(clocks, block),
            )
        self._masks(clocks, block, fault)

    def _at(
        self,
        kind: str,
        level: Level,
        message: str,
        waiting: Waiting,
        block: int,
        state: Sequence[str] = (),
    ) -> None:
        thread = waiting.warp * LANES + _lowest(waiting.mask)
        site = self._site(waiting.instruction, block, thread)
        advice = (
            "Every thread of the block must come to the same barrier: move it out of the branch"
        )
        self._add("sync", kind, level, message, site, advice, state=state)

    def _states(self, clocks: Clocks, block: int) -> list[str]:
        found = []
        for warp in range(clocks.warps):
            for one in (one for one in clocks.stuck if one.warp == warp):
                site = self._site(one.instruction, block, 0)
                found.append(
                    f"warp {warp}: lanes {one.mask:#010x} wait at barrier {one.number}, "
                    f"{site.file}:{site.line}"
                )
            if clocks.ended[warp]:
                found.append(f"warp {warp}: lanes {clocks.ended[warp]:#010x} have ended")
        return found

    def _masks(self, clocks: Clocks, block: int, fault: abi.Code | None) -> None:
        for number, sync in enumerate(clocks.syncs):
            last = number == len(clocks.syncs) - 1 and fault is abi.Code.SYNC
            here = [lane for lane in range(LANES) if sync.mask >> lane & 1]
            outside = [lane for lane in here if not sync.named[lane] >> lane & 1]
            absent = [lane for lane in here if sync.named[lane] & sync.live & ~sync.mask]
            unlike = [
                lane
                for lane in here
                for other in here
                if sync.named[lane] >> other & 1 and sync.named[other] != sync.named[lane]
            ]
            for kind, lanes, words in (
                ("outside-mask", outside, "a lane is not in the mask that it names"),
                ("absent-lane", absent if last else [], "a lane that the mask names is not here"),
                ("unlike-masks", unlike, "lanes that name each other give different masks"),
            ):
                if lanes:
                    lane = lanes[0]
                    self._add(
                        "sync",
                        kind,
                        "error",
                        f"Invalid mask {sync.named[lane]:#010x} in lane {lane}: {words}",
                        self._site(sync.instruction, block, sync.warp * LANES + lane),
                        "Compute the mask before the branch, for the lanes that take it",
                        state=[f"warp {sync.warp}: lanes {sync.mask:#010x} are here"],
                    )


def _aligned(made: Instruction) -> bool:
    return made.opcode == "bar" or made.has("aligned")


def _space(every: Rows, row: int) -> str:
    return SPACES[int(every.space[row])]


def _doing(every: Rows, row: int) -> str:
    if every.atomic[row]:
        return "atomic"
    return "write" if every.write[row] else "read"


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _triple(linear: int, shape: Triple) -> Triple:
    width, height, _ = shape
    return linear % width, linear // width % height, linear // (width * height)
