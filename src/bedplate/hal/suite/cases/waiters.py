"""timeline_wait_host and timeline: many who wait, what wakes them, and what does not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from bedplate.hal import abi
from bedplate.hal.batch import U64, Batch
from bedplate.hal.suite.registry import case
from bedplate.hal.suite.subject import LOOK_NS, WAIT_NS, Subject, expect

BAD = abi.BP_INVALID_ARGUMENT


class Waiters:
    """Threads that each wait once; `results` holds what they got, by number."""

    def __init__(self, waits: list[Callable[[], object]]) -> None:
        self.results: dict[int, object] = {}
        self.threads = [
            threading.Thread(target=self._run, args=(i, wait)) for i, wait in enumerate(waits)
        ]
        for thread in self.threads:
            thread.start()

    def _run(self, number: int, wait: Callable[[], object]) -> None:
        self.results[number] = wait()

    def join(self) -> dict[int, object]:
        """All results; fails the case when one thread is still waiting."""
        for thread in self.threads:
            thread.join(2 * WAIT_NS / 1e9)
        expect(len(self.results) == len(self.threads), "a waiter did not come back")
        return self.results


@case("timeline_wait_host", "positive", catches=["lost_wake"])
def many_wait_for_one_value(s: Subject) -> None:
    """Sixteen threads sleep on it; one signal wakes every one."""
    line = s.timeline()
    waiters = Waiters([lambda: s.wait(line, 3)] * 16)
    time.sleep(LOOK_NS / 1e9)
    expect(not waiters.results, "a waiter came back before the signal")
    s.works(s.api.timeline.signal(s.handle, line, 3), "timeline.signal")
    expect(set(waiters.join().values()) == {abi.BP_OK}, f"waiters got {waiters.results}")


@case("timeline_wait_host", "positive", tier="full")
def each_waits_for_its_own_value(s: Subject) -> None:
    """Eight threads for eight values: a signal wakes those it reaches, and no other."""
    line = s.timeline()
    waiters = Waiters([lambda i=i: s.wait(line, i + 1) for i in range(8)])  # type: ignore[misc]
    s.works(s.api.timeline.signal(s.handle, line, 4), "timeline.signal")
    time.sleep(LOOK_NS / 1e9)
    early = sorted(i for i in waiters.results if i >= 4)
    expect(not early, f"waiters for {[i + 1 for i in early]} came back at 4")
    s.works(s.api.timeline.signal(s.handle, line, 8), "timeline.signal")
    expect(set(waiters.join().values()) == {abi.BP_OK}, f"waiters got {waiters.results}")


@case("timeline_wait_host", "positive")
def the_device_wakes_sleepers(s: Subject) -> None:
    """A signal at the end of a batch, not only one of the host."""
    queue, gate, done = s.queue(), s.timeline(), s.timeline()
    s.works(s.submit(queue, Batch(), wait=[(gate, 1)], signal=[(done, 9)]), "queue.submit")
    waiters = Waiters([lambda: s.wait(done, 9)] * 4)
    time.sleep(LOOK_NS / 3e9)
    s.works(s.api.timeline.signal(s.handle, gate, 1), "timeline.signal")
    expect(set(waiters.join().values()) == {abi.BP_OK}, f"waiters got {waiters.results}")


@case("timeline_wait_host", "positive", needs=["module_native"])
def poison_wakes_sleepers(s: Subject) -> None:
    """Each gets the code, and the sentence in its own thread."""
    queue, gate, done = s.queue(), s.timeline(), s.timeline()
    batch = Batch()
    batch.launch(s.kernel("fail_at"), (1,), [U64(0)])
    s.works(s.submit(queue, batch, wait=[(gate, 1)], signal=[(done, 1)], tag=77001), "submit")
    waiters = Waiters([lambda: (s.wait(done, 1), s.said())] * 4)
    time.sleep(LOOK_NS / 3e9)
    s.works(s.api.timeline.signal(s.handle, gate, 1), "timeline.signal")
    for got in waiters.join().values():
        assert isinstance(got, tuple)
        status, text = got
        expect(status == abi.BP_LAUNCH_FAULT, f"a sleeper on failed work got {status}")
        expect("77001" in text, f"a sleeper's sentence does not name the batch: {text}")


@case("timeline_wait_host", "positive", tier="full")
def deadlines_are_each_waiters_own(s: Subject) -> None:
    """A short one ends without waking the long one, which still gets its value."""
    line = s.timeline()
    long = Waiters([lambda: s.wait(line, 1)] * 2)
    short = Waiters([lambda: s.wait(line, 1, LOOK_NS // 3)] * 2)
    expect(set(short.join().values()) == {abi.BP_DEADLINE}, f"short waits got {short.results}")
    expect(not long.results, "a long wait ended with another's deadline")
    s.works(s.api.timeline.signal(s.handle, line, 1), "timeline.signal")
    expect(set(long.join().values()) == {abi.BP_OK}, f"long waits got {long.results}")


@case("timeline", "positive", catches=["early_deadline"])
def a_deadline_is_not_early(s: Subject) -> None:
    """The clock has reached it when a wait gives up."""
    line = s.timeline()
    for timeout_ns in (1_000_000, 5_000_000, 60_000_000):
        deadline = time.monotonic_ns() + timeout_ns
        status = s.api.timeline.wait_host(s.handle, line, 1, deadline)
        left = deadline - time.monotonic_ns()
        s.refuses(status, abi.BP_DEADLINE, "waiting for nothing")
        expect(left <= 0, f"a wait gave up {left} ns before its deadline")


@case("timeline_wait_host", "positive")
def the_farthest_deadline_is_none(s: Subject) -> None:
    """All 64 bits set: the wait ends by the signal."""
    line = s.timeline()
    most = (1 << 64) - 1
    waiters = Waiters([lambda: int(s.api.timeline.wait_host(s.handle, line, 1, most))])
    time.sleep(LOOK_NS / 3e9)
    expect(not waiters.results, f"a wait without end gave {waiters.results}")
    s.works(s.api.timeline.signal(s.handle, line, 1), "timeline.signal")
    expect(waiters.join() == {0: abi.BP_OK}, f"a wait without end gave {waiters.results}")


@case("timeline_wait_host", "positive", tier="full")
def sleepers_hold_nobody(s: Subject) -> None:
    """While eight sleep, memory, queues, timelines and work go on."""
    line, other = s.timeline(), s.timeline()
    waiters = Waiters([lambda: s.wait(line, 1)] * 8)
    queue = s.queue()
    buffer = s.memory(64)
    batch = Batch()
    batch.fill(buffer, 0x0A0A0A0A)
    s.works(s.submit(queue, batch, signal=[(other, 1)]), "queue.submit beside sleepers")
    s.works(s.wait(other, 1), "waiting beside sleepers")
    s.works(s.api.queue.destroy(s.handle, queue), "queue.destroy beside sleepers")
    expect(s.content(buffer) == b"\x0a" * 64, "work beside sleepers was not done")
    s.works(s.api.timeline.signal(s.handle, line, 1), "timeline.signal")
    waiters.join()


@case("timeline_wait_host", "positive", tier="full")
def destroy_wakes_all_sleepers(s: Subject) -> None:
    """Eight on one timeline: CANCELLED, or INVALID_ARGUMENT for one that had not begun."""
    line = s.timeline()
    waiters = Waiters([lambda: s.wait(line, 1)] * 8)
    time.sleep(LOOK_NS / 1e9)
    s.works(s.api.timeline.destroy(s.handle, line), "timeline.destroy")
    wrong = set(waiters.join().values()) - {abi.BP_CANCELLED, BAD}
    expect(not wrong, f"sleepers on a destroyed timeline got {wrong}")


@case("timeline_wait_host", "positive")
def closing_the_device_wakes_sleepers(s: Subject) -> None:
    """Close returns, and every waiter has a status that says so."""
    other = Subject(s.backend, s.index)
    lines = [other.timeline() for _ in range(4)]
    waiters = Waiters([lambda one=one: other.wait(one, 1) for one in lines])  # type: ignore[misc]
    time.sleep(LOOK_NS / 1e9)
    other.close()
    wrong = set(waiters.join().values()) - {abi.BP_CANCELLED, BAD}
    expect(not wrong, f"sleepers on a closed device got {wrong}")


@case("timeline", "positive")
def looking_does_not_move(s: Subject) -> None:
    """Queries and waits that fail leave the value; a host signal still may take the next."""
    line = s.timeline(5)
    for _ in range(50):
        s.refuses(s.wait(line, 9, 0), abi.BP_DEADLINE, "polling")
        expect(s.value(line) == (abi.BP_OK, 5), "looking moved a timeline")
    s.works(s.api.timeline.signal(s.handle, line, 6), "timeline.signal")


@case("timeline", "positive")
def the_largest_value_is_the_end(s: Subject) -> None:
    """At all ones nothing grows any more, and every fence is met."""
    most = (1 << 64) - 1
    line = s.timeline(most)
    for value in (0, 1, most):
        status = s.api.timeline.signal(s.handle, line, value)
        s.refuses(status, BAD, f"signalling a timeline at its end to {value}")
        s.works(s.wait(line, value), f"waiting for {value} at the end")


@case("timeline", "positive", tier="full")
def observers_never_see_it_fall(s: Subject) -> None:
    """Two threads look while a device moves it through three hundred values."""
    line, queue, fell = s.timeline(), s.queue(), []

    def watch() -> None:
        last = 0
        while last < 300:
            now = s.value(line)[1]
            if now < last:
                fell.append((last, now))
            last = now

    watchers = Waiters([watch, watch])
    for value in range(1, 301):
        s.works(s.submit(queue, Batch(), signal=[(line, value)]), "queue.submit")
    s.works(s.wait(line, 300), "waiting for three hundred batches")
    watchers.join()
    expect(not fell, f"a timeline fell from {fell[:1]}")
