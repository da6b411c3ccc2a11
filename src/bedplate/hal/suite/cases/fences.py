"""Order between queues: only fences make it, and fences make all of it."""

from __future__ import annotations

import numpy as np

from bedplate.hal import abi
from bedplate.hal.batch import Batch
from bedplate.hal.buffer import Range
from bedplate.hal.suite.cases.batches import fill
from bedplate.hal.suite.registry import case
from bedplate.hal.suite.subject import LOOK_NS, Subject, expect


def copy(to: object, source: object) -> Batch:
    """A batch of one copy."""
    batch = Batch()
    batch.copy(to, source)  # type: ignore[arg-type]
    return batch


@case("queue", "positive", tier="full")
def two_queues_take_turns(s: Subject) -> None:
    """A hundred hand-overs by two timelines; each sees what the other wrote."""
    a, b = s.memory(4), s.memory(4 * 101)
    one, other, ping, pong = s.queue(), s.queue(), s.timeline(), s.timeline()
    for turn in range(1, 101):
        batch = Batch()
        batch.fill(a, turn)
        s.works(s.submit(one, batch, wait=[(pong, turn - 1)], signal=[(ping, turn)]), "submit")
        batch = copy(Range(b, 4 * turn, 4), a)
        s.works(s.submit(other, batch, wait=[(ping, turn)], signal=[(pong, turn)]), "submit")
    s.works(s.wait(pong, 100), "waiting for a hundred turns")
    words = np.frombuffer(s.content(b), "u4").tolist()
    wrong = [i for i in range(101) if words[i] != i]
    expect(not wrong, f"turns {wrong[:3]} saw another turn's word")


@case("queue", "positive", catches=["deaf_second_wait", "forgotten_fence"])
def a_batch_waits_for_all_its_fences(s: Subject) -> None:
    """Eight, opened in every other order; the last one opened is what counts."""
    for last in (0, 3, 7):
        gates, queue, done = [s.timeline() for _ in range(8)], s.queue(), s.timeline()
        status = s.submit(queue, Batch(), wait=[(g, 1) for g in gates], signal=[(done, 1)])
        s.works(status, "queue.submit")
        for gate in gates[:last] + gates[last + 1 :]:
            s.works(s.api.timeline.signal(s.handle, gate, 1), "timeline.signal")
        s.refuses(s.wait(done, 1, LOOK_NS), abi.BP_DEADLINE, f"a batch whose fence {last} is held")
        s.works(s.api.timeline.signal(s.handle, gates[last], 1), "timeline.signal")
        s.works(s.wait(done, 1), "waiting for a batch that is free")


@case("queue", "positive", tier="full")
def one_signal_frees_many_queues(s: Subject) -> None:
    """Eight wait for one value; none begins before it, all after it."""
    buffer, gate, done = s.memory(4 * 8), s.timeline(), [s.timeline() for _ in range(8)]
    for i in range(8):
        batch = fill(Range(buffer, 4 * i, 4), i + 1)
        s.works(s.submit(s.queue(), batch, wait=[(gate, 1)], signal=[(done[i], 1)]), "submit")
    s.refuses(s.wait(done[5], 1, LOOK_NS), abi.BP_DEADLINE, "a queue behind a closed gate")
    expect(s.content(buffer) == bytes(32), "a queue began before its fence")
    s.works(s.api.timeline.signal(s.handle, gate, 1), "timeline.signal")
    for i in range(8):
        s.works(s.wait(done[i], 1), f"waiting for queue {i} of eight")
    wanted = b"".join(bytes([i + 1]) * 4 for i in range(8))
    expect(s.content(buffer) == wanted, "a freed queue did not do its work")


@case("queue", "positive")
def a_join_sees_every_branch(s: Subject) -> None:
    """Fan out to eight queues and back in: the last batch sees all their writes."""
    buffer, out = s.memory(4 * 8), s.memory(4 * 8)
    root, end = s.timeline(), s.timeline()
    branches = [s.timeline() for _ in range(8)]
    join = copy(out, buffer)
    status = s.submit(s.queue(), join, wait=[(b, 1) for b in branches], signal=[(end, 1)])
    s.works(status, "submitting the join first")
    for i, branch in enumerate(branches):
        batch = Batch()
        for turn in range(20):
            batch.fill(Range(buffer, 4 * i, 4), 100 * i + turn)
        s.works(s.submit(s.queue(), batch, wait=[(root, 1)], signal=[(branch, 1)]), "submit")
    s.works(s.api.timeline.signal(s.handle, root, 1), "timeline.signal")
    s.works(s.wait(end, 1), "waiting for the join")
    words = np.frombuffer(s.content(out), "u4").tolist()
    expect(words == [100 * i + 19 for i in range(8)], f"the join saw {words}")


@case("queue", "positive")
def a_diamond_keeps_its_shape(s: Subject) -> None:
    """Two branches read what the top wrote, the bottom reads both."""
    top, left, right, out = s.memory(64), s.memory(64), s.memory(64), s.memory(128)
    t, a, b, end = (s.timeline() for _ in range(4))
    bottom = Batch()
    bottom.copy(Range(out, 0, 64), left)
    bottom.copy(Range(out, 64, 64), right)
    last = s.submit(s.queue(), bottom, wait=[(a, 1), (b, 1)], signal=[(end, 1)])
    s.works(last, "queue.submit")
    s.works(s.submit(s.queue(), copy(right, top), wait=[(t, 1)], signal=[(b, 1)]), "submit")
    s.works(s.submit(s.queue(), copy(left, top), wait=[(t, 1)], signal=[(a, 1)]), "submit")
    s.works(s.submit(s.queue(), fill(top, 3), signal=[(t, 1)]), "queue.submit")
    s.works(s.wait(end, 1), "waiting for a diamond submitted upside down")
    expect(s.content(out) == b"\x03" * 128, "a branch did not see the top")


@case("queue", "positive")
def a_chain_of_eight_queues(s: Subject) -> None:
    """Submitted from the last to the first, run from the first to the last."""
    buffer, steps = s.memory(4 * 9), [s.timeline() for _ in range(9)]
    for i in range(7, -1, -1):
        batch = copy(Range(buffer, 4 * i + 4, 4), Range(buffer, 4 * i, 4))
        fences = {"wait": [(steps[i], 1)], "signal": [(steps[i + 1], 1)]}
        s.works(s.submit(s.queue(), batch, **fences), "queue.submit")  # type: ignore[arg-type]
    first = fill(Range(buffer, 0, 4), 5)
    s.works(s.submit(s.queue(), first, signal=[(steps[0], 1)]), "queue.submit")
    s.works(s.wait(steps[8], 1), "waiting for the end of a chain")
    expect(s.content(buffer) == b"\x05" * 36, "the chain broke")


@case("queue", "positive")
def a_fence_of_its_own_queue_is_met(s: Subject) -> None:
    """A batch may wait for what an earlier one of the same queue signals."""
    queue, step, done = s.queue(), s.timeline(), s.timeline()
    s.works(s.submit(queue, Batch(), signal=[(step, 1)]), "queue.submit")
    s.works(s.submit(queue, Batch(), wait=[(step, 1)], signal=[(done, 1)]), "queue.submit")
    s.works(s.wait(done, 1), "waiting for a batch that waited for its own queue")


@case("queue", "positive", tier="full")
def a_step_past_the_fence_is_enough(s: Subject) -> None:
    """One host signal over five values frees the queues of all five, and not the sixth."""
    gate = s.timeline()
    done = [s.timeline() for _ in range(6)]
    for i in range(6):
        status = s.submit(s.queue(), Batch(), wait=[(gate, i + 1)], signal=[(done[i], 1)])
        s.works(status, "queue.submit")
    s.works(s.api.timeline.signal(s.handle, gate, 5), "timeline.signal")
    for i in range(5):
        s.works(s.wait(done[i], 1), f"waiting behind fence {i + 1} of a timeline at 5")
    s.refuses(s.wait(done[5], 1, LOOK_NS), abi.BP_DEADLINE, "a batch behind fence 6")
    s.works(s.api.timeline.signal(s.handle, gate, 6), "timeline.signal")
    s.works(s.wait(done[5], 1), "waiting behind fence 6")


@case("queue", "positive")
def gates_open_in_any_order(s: Subject) -> None:
    """Queues are freed one by one, last first, and each runs at once."""
    gates, done = [s.timeline() for _ in range(5)], [s.timeline() for _ in range(5)]
    for gate, end in zip(gates, done, strict=True):
        s.works(s.submit(s.queue(), Batch(), wait=[(gate, 1)], signal=[(end, 1)]), "submit")
    for i in (4, 1, 3, 0, 2):
        s.works(s.api.timeline.signal(s.handle, gates[i], 1), "timeline.signal")
        s.works(s.wait(done[i], 1), f"waiting for queue {i} while others are held")


@case("queue", "positive")
def one_timeline_is_moved_by_many_queues(s: Subject) -> None:
    """In the order that other fences force, it reaches every value."""
    line = s.timeline()
    for value in range(1, 9):
        status = s.submit(s.queue(), Batch(), wait=[(line, value - 1)], signal=[(line, value)])
        s.works(status, "queue.submit")
    s.works(s.wait(line, 8), "waiting for eight queues on one timeline")
    expect(s.value(line) == (abi.BP_OK, 8), "the timeline is elsewhere")


@case("queue", "positive")
def destroying_a_queue_leaves_others(s: Subject) -> None:
    """Its own batch is cancelled; another queue's, behind the same gate, runs."""
    gate, lost, kept = s.timeline(), s.timeline(), s.timeline()
    one, other = s.queue(), s.queue()
    s.works(s.submit(one, Batch(), wait=[(gate, 1)], signal=[(lost, 1)]), "queue.submit")
    s.works(s.submit(other, Batch(), wait=[(gate, 1)], signal=[(kept, 1)]), "queue.submit")
    s.works(s.api.queue.destroy(s.handle, one), "queue.destroy")
    s.refuses(s.wait(lost, 1), abi.BP_CANCELLED, "waiting for a batch of a destroyed queue")
    s.works(s.api.timeline.signal(s.handle, gate, 1), "timeline.signal")
    s.works(s.wait(kept, 1), "waiting for a batch of the other queue")


@case("queue", "positive")
def cancelling_spreads_along_fences(s: Subject) -> None:
    """What waits for a cancelled batch fails too, through three queues; bystanders do not."""
    gate, steps, free = s.timeline(), [s.timeline() for _ in range(4)], s.timeline()
    first = s.queue()
    s.works(s.submit(first, Batch(), wait=[(gate, 1)], signal=[(steps[0], 1)]), "submit")
    for i in range(3):
        status = s.submit(s.queue(), Batch(), wait=[(steps[i], 1)], signal=[(steps[i + 1], 1)])
        s.works(status, "queue.submit")
    s.works(s.api.queue.destroy(s.handle, first), "queue.destroy")
    s.refuses(s.wait(steps[3], 1), abi.BP_CANCELLED, "waiting at the end of a cancelled chain")
    s.works(s.submit(s.queue(), Batch(), signal=[(free, 1)]), "queue.submit")
    s.works(s.wait(free, 1), "waiting for a bystander")


@case("queue", "positive")
def every_signal_of_a_cancelled_batch_is_poisoned(s: Subject) -> None:
    """None is forgotten, none keeps its waiters waiting."""
    queue, gate, signals = s.queue(), s.timeline(), [s.timeline(i) for i in range(6)]
    status = s.submit(queue, Batch(), wait=[(gate, 1)], signal=[(t, 50) for t in signals])
    s.works(status, "queue.submit")
    s.works(s.api.queue.destroy(s.handle, queue), "queue.destroy")
    for i, timeline in enumerate(signals):
        s.refuses(s.wait(timeline, 50), abi.BP_CANCELLED, "waiting for a cancelled signal")
        status, value = s.value(timeline)
        s.refuses(status, abi.BP_CANCELLED, "query of a cancelled signal")
        expect(value == i, f"poison moved a timeline from {i} to {value}")


@case("timeline", "positive")
def a_destroyed_fence_cancels_what_waits(s: Subject) -> None:
    """A batch behind a timeline that is destroyed ends in CANCELLED, not in silence."""
    buffer, queue, gate, done = s.memory(64), s.queue(), s.timeline(), s.timeline()
    status = s.submit(queue, fill(buffer, 1), wait=[(gate, 1)], signal=[(done, 1)])
    s.works(status, "queue.submit")
    s.works(s.api.timeline.destroy(s.handle, gate), "timeline.destroy")
    s.refuses(s.wait(done, 1), abi.BP_CANCELLED, "waiting behind a destroyed fence")
    expect(s.content(buffer) == bytes(64), "a batch behind a destroyed fence ran")


@case("timeline", "positive")
def a_destroyed_signal_does_not_stop_a_batch(s: Subject) -> None:
    """The work is done and the other signal given."""
    buffer, queue, gate = s.memory(64), s.queue(), s.timeline()
    gone, done = s.timeline(), s.timeline()
    signals = [(gone, 1), (done, 1)]
    status = s.submit(queue, fill(buffer, 6), wait=[(gate, 1)], signal=signals)
    s.works(status, "queue.submit")
    s.works(s.api.timeline.destroy(s.handle, gone), "timeline.destroy")
    s.works(s.api.timeline.signal(s.handle, gate, 1), "timeline.signal")
    s.works(s.wait(done, 1), "waiting for the other signal")
    expect(s.content(buffer) == b"\x06" * 64, "a batch with a destroyed signal did not run")
