"""Every order of a small program of hosts, streams and timelines, in one thread.

    program = Program()
    host, lane = program.host(), program.stream()
    done = program.timeline()
    host.submit(lane, signal=[(done, 1)], tag=7)
    host.wait((done, 1))
    assert explore(program).verdict == "clean"

The device is one of numbers; its queues choose by the scheduler's own rule. A
program that can go wrong comes back with the shortest schedule that does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bedplate.runtime.errors import OptionsInvalid
from bedplate.runtime.limits import INT32, UINT32, UINT64, within
from bedplate.runtime.native import ffi, library
from bedplate.runtime.plugin import entry
from bedplate.runtime.streams import DEVICE_WAITS, check_stream

VERDICTS = ("clean", "deadlock", "lost", "shrink", "overtake")
Sleep = Literal["atomic", "seen", "blind"]
Point = tuple[int, int]
"""A timeline's number and a value."""

_SUBMIT, _SIGNAL = 1, 2
_WAITS: dict[str, int] = {"atomic": 3, "seen": 4, "blind": 5}


@dataclass(frozen=True, slots=True)
class _Step:
    host: int
    kind: int
    lane: int
    waits: tuple[Point, ...]
    signals: tuple[Point, ...]
    tag: int


class ProgramHost:
    """A thread of the program: its steps in the order of the calls."""

    def __init__(self, steps: list[_Step], number: int) -> None:
        self._steps = steps
        self.number = number

    def submit(
        self, stream: int, *, wait: Sequence[Point] = (), signal: Sequence[Point] = (), tag: int = 0
    ) -> None:
        """A batch for the device."""
        self._steps.append(_Step(self.number, _SUBMIT, stream, tuple(wait), tuple(signal), tag))

    def signal(self, point: Point) -> None:
        """Move a timeline."""
        self._steps.append(_Step(self.number, _SIGNAL, 0, (), (point,), 0))

    def wait(self, point: Point, sleep: Sleep = "atomic") -> None:
        """Sleep until a timeline is there.

        `atomic` looks and sleeps at once; `seen` as two steps, of which the
        second sees what changed since the first; `blind` does not, and so may
        sleep for ever.
        """
        self._steps.append(_Step(self.number, _WAITS[sleep], 0, (point,), (), 0))


class Program:
    """What `explore` takes; timelines start at 0. `ageing` is the scheduler's.

    `allowed` is how often a ready batch may be overtaken, `ageing` by default.
    """

    def __init__(self, *, ageing: int = 8, allowed: int | None = None) -> None:
        self.ageing = ageing
        self.allowed = ageing if allowed is None else allowed
        self.steps: list[_Step] = []
        self.lanes: list[tuple[int, int]] = []
        self.queues: list[int] = []
        self._hosts = 0
        self._timelines = 0

    def host(self) -> ProgramHost:
        """Another thread."""
        self._hosts += 1
        return ProgramHost(self.steps, self._hosts - 1)

    def queue(self, *, device_waits: bool = False) -> int:
        """Another queue of the device."""
        self.queues.append(DEVICE_WAITS if device_waits else 0)
        return len(self.queues) - 1

    def stream(self, queue: int | None = None, *, priority: int = 0) -> int:
        """Another stream, on a queue of its own unless one is given."""
        self.lanes.append((self.queue() if queue is None else queue, priority))
        return len(self.lanes) - 1

    def timeline(self) -> int:
        """Another timeline."""
        self._timelines += 1
        return self._timelines - 1

    @property
    def counts(self) -> tuple[int, int]:
        """Hosts and timelines."""
        return self._hosts, self._timelines


@dataclass(frozen=True, slots=True)
class Ready:
    """The head of a stream whose waits have passed; `arrival` 0 came first."""

    stream: int
    tag: int
    priority: int
    overtaken: int
    arrival: int


RULE_CDEF = """
uint32_t bp_runtime_rule_1(void *, const bp_runtime_ready *, uint32_t, uint32_t);
"""
ffi.cdef(RULE_CDEF)

Rule = Callable[[Sequence[Ready]], int | None]
"""Which of a queue's ready batches goes next, by its place; None: none now."""


def _native_rule(rule: Rule | str | Path, raised: list[BaseException]) -> Any:
    if not callable(rule):
        return entry(rule, "bp_runtime_rule_1")

    def ask(_: Any, heads: Any, count: int, ageing: int) -> int:
        ready = [
            Ready(int(h.lane), int(h.tag), int(h.priority), int(h.overtaken), int(h.arrival))
            for h in heads[0:count]
        ]
        choice = rule(ready)
        return count if choice is None else choice

    def failed(kind: Any, error: BaseException, trace: Any) -> None:
        raised.append(error)

    return ffi.callback("bp_runtime_rule", ask, error=0, onerror=failed)


@dataclass(frozen=True, slots=True)
class Explored:
    """What `explore` found: `text` is the schedule and who is stuck on what, a line each.

    `complete` says that every order was covered; a clean verdict means little
    without it. `steps` is the length of the schedule.
    """

    verdict: str
    complete: bool
    steps: int
    states: int
    schedules: int
    text: str


def explore(
    program: Program,
    *,
    seed: int = 0,
    states: int = 1_000_000,
    depth: int | None = None,
    walks: int = 0,
    rule: Rule | str | Path | None = None,
) -> Explored:
    """Search the orders of a program depth first, `states` and `depth` bounding it.

    With `walks` it draws so many whole schedules instead. The same seed gives
    the same search. `rule` chooses among a queue's ready batches in place of the
    scheduler's: a function, or the path of a library (`bedplate/policy.h`); it must
    answer the same when it is asked the same. Raises OptionsInvalid for a program
    that refers to what it has not.
    """
    described = ffi.new("bp_runtime_program *")
    points = [point for step in program.steps for point in (*step.waits, *step.signals)]
    fences = ffi.new("bp_fence[]", max(len(points), 1))
    for place, (timeline, value) in zip(fences, points, strict=False):
        place.timeline = within("a timeline", timeline, 0, UINT64)
        place.value = within("a timeline's value", value, 0, UINT64)
    steps = ffi.new("bp_runtime_step[]", max(len(program.steps), 1))
    first = 0
    for place, step in zip(steps, program.steps, strict=False):
        place.host, place.kind, place.tag = step.host, step.kind, within("tag", step.tag, 0, UINT64)
        place.lane = within("a stream", step.lane, 0, UINT32)
        place.first_fence = first
        place.wait_count, place.signal_count = len(step.waits), len(step.signals)
        first += len(step.waits) + len(step.signals)
    lanes = ffi.new("bp_runtime_lane[]", max(len(program.lanes), 1))
    for place, (queue, priority) in zip(lanes, program.lanes, strict=False):
        if not 0 <= queue < len(program.queues):
            raise OptionsInvalid(f"there is no queue {queue}")
        place.queue, place.flags = queue, program.queues[queue]
        place.priority = within("priority", priority, *INT32)
    described.steps, described.step_count = steps, len(program.steps)
    described.lanes, described.lane_count = lanes, len(program.lanes)
    described.fences, described.fence_count = fences, len(points)
    described.host_count, described.timeline_count = program.counts
    described.queue_count = len(program.queues)
    described.ageing = within("ageing", program.ageing, 0, UINT32)
    described.allowed = within("allowed", program.allowed, 0, UINT32)
    options = ffi.new("bp_runtime_explore_options *")
    options.seed = within("seed", seed, 0, UINT64)
    options.states = within("states", states, 1, UINT64)
    options.walks = within("walks", walks, 0, UINT64)
    options.depth = within("depth", depth or 0, 0, UINT32)
    raised: list[BaseException] = []
    native = ffi.NULL if rule is None else _native_rule(rule, raised)
    options.rule = native
    out = ffi.new("bp_runtime_explored *")
    room = 1 << 16
    text, length = ffi.new("char[]", room), ffi.new("uint64_t *")
    check_stream(library().bp_runtime_explore(described, options, out, text, room, length))
    if raised:
        raise raised[0]
    return Explored(
        VERDICTS[out.verdict],
        bool(out.complete),
        int(out.steps),
        int(out.states),
        int(out.schedules),
        bytes(ffi.string(text)).decode(),
    )
