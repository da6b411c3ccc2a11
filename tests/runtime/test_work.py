"""What belongs to which scheduler, what may be waited for, and numbers beyond their limits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bedplate.hal.api import Device
from bedplate.runtime.api import (
    NumbersAllocator,
    OptionsInvalid,
    Program,
    Scheduler,
    explore,
    replay,
    workload,
)

SOON = 5_000_000_000
HUGE = 1 << 40


def test_another_schedulers_streams_graphs_and_queues_are_refused(
    device: Device, work: Scheduler
) -> None:
    """Their numbers mean something else here."""
    with Scheduler(device) as other:
        theirs, ours = other.stream(), work.stream()
        with pytest.raises(OptionsInvalid, match="stream 0 is another scheduler's"):
            work.record(ours, theirs)
        assert work.recording is None
        with other.record(theirs) as recording:
            theirs.submit()
        with pytest.raises(OptionsInvalid, match="graph is another scheduler's; record it"):
            ours.launch(recording.graph)
        with pytest.raises(OptionsInvalid, match="queue 0 is another scheduler's"):
            work.stream(theirs.queue)
        other.wait(theirs.launch(recording.graph), SOON)


def test_a_fence_of_a_recorded_batch_is_for_its_recording(work: Scheduler) -> None:
    """The stream is given the same value again by the next submit that runs."""
    main, side = work.stream(), work.stream()
    with work.record(main, side) as recording:
        first = main.submit()
        side.submit(wait=[first])
    with pytest.raises(OptionsInvalid, match="recorded batch, which no run passes; wait for what"):
        work.wait(first, 0)
    with pytest.raises(OptionsInvalid, match="recorded batch"):
        side.submit(wait=[first])
    with pytest.raises(OptionsInvalid, match="recorded batch"):
        side.launch(recording.graph, wait=[first])
    with work.record(main), pytest.raises(OptionsInvalid, match="recorded batch"):
        main.submit(wait=[first])
    launched = main.launch(recording.graph)
    assert launched == first
    work.wait(launched, SOON)


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda work: work.stream(priority=HUGE), "priority is 1099511627776; give a whole number"),
        (lambda work: work.stream(priority=1.5), "priority is 1.5"),
        (lambda work: work.queue(priority=-HUGE), "priority is -1099511627776; give"),
        (lambda work: work.queue(window=65), "window is 65; give a whole number from 0 to 64"),
        (lambda work: work.stream().submit(tag=-1), "tag is -1; give"),
        (lambda work: work.stream().submit(tag=1 << 64), "tag is 18446744073709551616; give"),
        (lambda work: work.wait((work.device.timeline(), -1)), "a fence's value is -1"),
        (lambda work: work.signal((work.device.timeline(), 1 << 64)), "a fence's value is 184467"),
        (lambda work: work.stream().submit(wait=[(work.device.timeline(), -1)]), "value is -1"),
        (lambda work: Scheduler(work.device, capacity=0), "capacity is 0; give .* 2 to 1,048,576"),
        (lambda work: Scheduler(work.device, ageing=-8), "ageing is -8; give .* 1 to 4,294,967"),
        (lambda work: NumbersAllocator(1 << 70), "capacity is 11805"),
        (lambda work: NumbersAllocator(1 << 20, piece=-1), "piece is -1"),
        (lambda work: replay(workload("training", seed=1), capacity_bytes=-1), "capacity_bytes is"),
        (lambda work: explore(Program(), seed=-1), "seed is -1"),
        (lambda work: explore(Program(), states=0), "states is 0; give"),
        (lambda work: explore(Program(), depth=HUGE), "depth is 10995"),
        (lambda work: explore(Program(ageing=HUGE)), "ageing is 10995"),
    ],
)
def test_numbers_beyond_their_limits_say_what_is_allowed(
    work: Scheduler, call: Callable[[Scheduler], object], part: str
) -> None:
    """The typed error, with the value and the limits, before native code sees it."""
    with pytest.raises(OptionsInvalid, match=part):
        call(work)


def test_a_program_with_a_priority_beyond_32_bits_is_refused() -> None:
    """As a scheduler's."""
    program = Program()
    program.stream(priority=HUGE)
    with pytest.raises(OptionsInvalid, match="priority is 1099511627776"):
        explore(program)
