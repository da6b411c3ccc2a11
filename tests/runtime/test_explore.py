"""Every order of small programs: planted bugs are found shortest first, mended twins are clean."""

from __future__ import annotations

import pytest

from bedplate.runtime.api import Explored, OptionsInvalid, Program, explore

SEEDS = range(8)


def cyclic(mended: bool) -> Program:
    """Two streams whose first batches wait for each other's; mended, one does not."""
    program = Program()
    host, other = program.host(), program.host()
    one, two = program.stream(), program.stream()
    left, right = program.timeline(), program.timeline()
    host.submit(one, signal=[(left, 1)], tag=1)
    host.submit(one, wait=[(right, 2)], signal=[(left, 2)], tag=2)
    wait = [(left, 1)] if mended else [(left, 2)]
    other.submit(two, signal=[(right, 1)], tag=3)
    other.submit(two, wait=wait, signal=[(right, 2)], tag=4)
    host.wait((right, 2))
    return program


def sleeper(mended: bool, batches: int = 2) -> Program:
    """A host that looks, then sleeps; the device signals between the two."""
    program = Program()
    host, waiter = program.host(), program.host()
    stream, done = program.stream(), program.timeline()
    for value in range(1, batches + 1):
        host.submit(stream, signal=[(done, value)], tag=value)
    waiter.wait((done, batches), "seen" if mended else "blind")
    return program


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cyclic_wait_is_found(seed: int) -> None:
    """With the two batches that are stuck; the mended twin has no bad order."""
    found = explore(cyclic(False), seed=seed)
    assert (found.verdict, found.complete, found.steps) == ("deadlock", True, 6)
    assert "stuck: batch 2 of stream 0 waits for timeline 1 to reach 2, which is at 1" in found.text
    assert "stuck: batch 4 of stream 1 waits for timeline 0 to reach 2" in found.text
    clean = explore(cyclic(True), seed=seed)
    assert (clean.verdict, clean.complete) == ("clean", True)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_lost_wake_up_is_found(seed: int) -> None:
    """The shortest schedule, whatever the seed: the last signal comes between look and sleep."""
    found = explore(sleeper(False), seed=seed)
    assert (found.verdict, found.complete, found.steps) == ("lost", True, 6)
    assert found.text.splitlines()[-1] == (
        "stuck: host 1 sleeps for timeline 0 to reach 2, which is at 2"
    )
    clean = explore(sleeper(True), seed=seed)
    assert (clean.verdict, clean.complete) == ("clean", True)


def test_random_walks_find_it_too_and_repeat() -> None:
    """For programs too large to search; the same seed gives the same schedule."""
    big = sleeper(False, batches=12)
    found = explore(big, walks=2000, seed=5)
    assert (found.verdict, found.complete) == ("lost", False)
    assert explore(big, walks=2000, seed=5) == found
    assert explore(sleeper(True, batches=12), walks=2000, seed=5).verdict == "clean"


def test_bounds_are_said() -> None:
    """A search that did not see everything is not complete."""
    assert explore(sleeper(True, 6)).complete
    assert not explore(sleeper(True, 6), states=5).complete
    assert not explore(sleeper(True, 6), depth=3).complete


def queue_program(*, device_waits: bool) -> Program:
    """Two streams of one queue; the first batch waits for what the second does."""
    program = Program()
    host = program.host()
    queue = program.queue(device_waits=device_waits)
    one, two = program.stream(queue), program.stream(queue)
    done = program.timeline()
    host.submit(one, wait=[(done, 1)], tag=1)
    host.submit(two, signal=[(done, 1)], tag=2)
    return program


def test_a_wait_on_the_device_blocks_the_queue() -> None:
    """Parked on the host the same program runs: why the flag is for queues of one stream."""
    found = explore(queue_program(device_waits=True))
    assert found.verdict == "deadlock"
    assert "batch 2 of stream 1 is behind another on its queue" in found.text
    assert explore(queue_program(device_waits=False)).verdict == "clean"


def priorities(ageing: int, allowed: int) -> Explored:
    """One low batch beside six of a high priority, in every order."""
    program = Program(ageing=ageing, allowed=allowed)
    host, other = program.host(), program.host()
    queue = program.queue()
    low, high = program.stream(queue), program.stream(queue, priority=1)
    host.submit(low, tag=1)
    for tag in range(2, 8):
        other.submit(high, tag=tag)
    return explore(program)


def test_the_ageing_bound_holds_in_every_order() -> None:
    """And is reached: one fewer is too few."""
    for ageing in (2, 3, 4):
        assert priorities(ageing, ageing).verdict == "clean"
        assert priorities(ageing, ageing - 1).verdict == "overtake"


def test_a_signal_that_shrinks_is_found() -> None:
    """Two hosts move a timeline; one order is wrong."""
    program = Program()
    one, two, timeline = program.host(), program.host(), program.timeline()
    one.signal((timeline, 1))
    two.signal((timeline, 2))
    found = explore(program)
    assert (found.verdict, found.steps) == ("shrink", 2)


def test_a_program_that_refers_to_nothing_is_refused() -> None:
    """By the number that is wrong."""
    program = Program()
    program.host().submit(3)
    with pytest.raises(OptionsInvalid, match="stream 3"):
        explore(program)
    program = Program()
    program.host().wait((4, 1))
    with pytest.raises(OptionsInvalid, match="timeline 4"):
        explore(program)
