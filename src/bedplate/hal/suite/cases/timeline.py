"""timeline, and timeline_wait_host."""

from __future__ import annotations

import threading
import time

from bedplate.hal import abi
from bedplate.hal.batch import U64, Batch
from bedplate.hal.native import ffi
from bedplate.hal.suite.registry import case
from bedplate.hal.suite.subject import LOOK_NS, WAIT_NS, Subject, expect

BAD = abi.BP_INVALID_ARGUMENT


@case("timeline", "positive")
def it_starts_where_it_was_put(s: Subject) -> None:
    """0, a middle value and the largest."""
    for initial in (0, 41, (1 << 64) - 1):
        told = s.value(s.timeline(initial))
        expect(told == (abi.BP_OK, initial), f"a new timeline of {initial} says {told}")


@case("timeline", "positive", catches=["stuck_value"])
def a_signal_moves_it(s: Subject) -> None:
    """query sees each value, in steps of any width, up to all 64 bits."""
    timeline = s.timeline()
    for value in (1, 2, 1000, 1 << 40, (1 << 64) - 1):
        s.works(s.api.timeline.signal(s.handle, timeline, value), "timeline.signal")
        told = s.value(timeline)
        expect(told == (abi.BP_OK, value), f"signalled to {value}, it says {told}")


@case("timeline", "negative", catches=["backwards"])
def it_never_goes_back(s: Subject) -> None:
    """The same or a smaller value is refused and changes nothing."""
    timeline = s.timeline(10)
    for value in (10, 9, 0):
        status = s.api.timeline.signal(s.handle, timeline, value)
        s.refuses(status, BAD, f"signalling 10 to {value}")
    expect(s.value(timeline) == (abi.BP_OK, 10), "a refused signal changed the value")


@case("timeline", "positive")
def a_wait_for_the_past_returns(s: Subject) -> None:
    """With a deadline of 0, which polls."""
    timeline = s.timeline(3)
    status = s.api.timeline.wait_host(s.handle, timeline, 3, 0)
    s.works(status, "polling for a value that is there")
    status = s.api.timeline.wait_host(s.handle, timeline, 4, 0)
    s.refuses(status, abi.BP_DEADLINE, "polling for a value that is not there")


@case("timeline", "positive", catches=["deadline_is_success"])
def a_deadline_ends_a_wait(s: Subject) -> None:
    """A fence that is never signalled; the device is still usable."""
    timeline = s.timeline()
    status = s.wait(timeline, 1, LOOK_NS)
    s.refuses(status, abi.BP_DEADLINE, "waiting for a fence that is never signalled")
    s.works(s.api.timeline.signal(s.handle, timeline, 1), "timeline.signal")
    s.works(s.wait(timeline, 1), "waiting after a deadline")


@case("timeline", "negative")
def a_destroyed_timeline_is_stale(s: Subject) -> None:
    """Every function refuses it, destroy too."""
    timeline = s.timeline()
    s.works(s.api.timeline.destroy(s.handle, timeline), "timeline.destroy")
    out = ffi.new("uint64_t *")
    s.refuses(s.api.timeline.query(s.handle, timeline, out), BAD, "query of a stale timeline")
    s.refuses(s.api.timeline.signal(s.handle, timeline, 1), BAD, "signal of a stale timeline")
    s.refuses(s.wait(timeline, 1), BAD, "waiting for a stale timeline")
    s.refuses(s.api.timeline.destroy(s.handle, timeline), BAD, "destroying twice")


@case("timeline", "negative")
def no_place_for_a_timeline(s: Subject) -> None:
    """Null results are refused."""
    s.refuses(s.api.timeline.create(s.handle, 0, ffi.NULL), BAD, "create without a result")
    status = s.api.timeline.query(s.handle, s.timeline(), ffi.NULL)
    s.refuses(status, BAD, "query without a result")


def failed(s: Subject, initial: int = 0) -> tuple[int, int]:
    """A timeline at `initial` that failed work poisoned, and the status of that.

    Native code can fail by itself; elsewhere the work is cancelled while it waits.
    """
    queue, done, gate = s.queue(), s.timeline(initial), s.timeline()
    batch = Batch()
    if "module_native" in s.info.claims:
        s.use_code("native")
        batch.launch(s.kernel("fail_at"), (1,), [U64(0)])
        s.works(s.submit(queue, batch, signal=[(done, initial + 1)]), "queue.submit")
        return done, abi.BP_LAUNCH_FAULT
    status = s.submit(queue, batch, wait=[(gate, 1)], signal=[(done, initial + 1)])
    s.works(status, "queue.submit")
    s.works(s.api.queue.destroy(s.handle, queue), "queue.destroy")
    return done, abi.BP_CANCELLED


@case("timeline", "positive", catches=["amnesia"])
def poison_is_sticky(s: Subject) -> None:
    """After a failure every look gives the code, however often, and a signal is refused."""
    done, code = failed(s, 4)
    for _ in range(3):
        s.refuses(s.wait(done, 5), code, "waiting for failed work")
    for _ in range(3):
        status, value = s.value(done)
        s.refuses(status, code, "query of a poisoned timeline")
        expect(value == 4, f"poison moved the value to {value}")
    status = s.api.timeline.signal(s.handle, done, 9)
    s.refuses(status, code, "signalling a poisoned timeline")


@case("timeline", "positive")
def poison_spreads_to_what_waits(s: Subject) -> None:
    """A batch behind a poisoned fence does not run, and passes the code on."""
    bad, code = failed(s)
    buffer, queue, after, batch = s.memory(64), s.queue(), s.timeline(), Batch()
    batch.fill(buffer, 0x01010101)
    status = s.submit(queue, batch, wait=[(bad, 1)], signal=[(after, 1)])
    s.works(status, "queue.submit")
    s.refuses(s.wait(after, 1), code, "waiting behind a poisoned fence")
    expect(s.content(buffer) == bytes(64), "a batch behind a poisoned fence ran")


@case("timeline", "positive")
def a_failure_leaves_others_alone(s: Subject) -> None:
    """The queue goes on, and a timeline that had no part is not poisoned."""
    bad, code = failed(s)
    queue, after, other = s.queue(), s.timeline(), s.timeline()
    s.works(s.submit(queue, Batch(), wait=[(bad, 1)], signal=[(after, 1)]), "queue.submit")
    s.works(s.submit(queue, Batch(), signal=[(other, 1)]), "queue.submit")
    s.works(s.wait(other, 1), "waiting for a batch behind a failed one")
    s.refuses(s.wait(after, 1), code, "waiting for the failed one")


@case("timeline_wait_host", "positive")
def a_sleeper_wakes(s: Subject) -> None:
    """A wait on another thread ends when the value is passed, not before."""
    timeline, statuses = s.timeline(), []
    thread = threading.Thread(target=lambda: statuses.append(s.wait(timeline, 5)))
    thread.start()
    s.works(s.api.timeline.signal(s.handle, timeline, 4), "timeline.signal")
    thread.join(LOOK_NS / 1e9)
    expect(thread.is_alive(), "a wait ended before its value")
    s.works(s.api.timeline.signal(s.handle, timeline, 6), "timeline.signal")
    thread.join(WAIT_NS / 1e9)
    expect(statuses == [abi.BP_OK], f"a wait past its value gave {statuses}")


@case("timeline_wait_host", "positive")
def destroy_wakes_sleepers(s: Subject) -> None:
    """With CANCELLED, or INVALID_ARGUMENT when it had not begun."""
    timeline, statuses = s.timeline(), []
    thread = threading.Thread(target=lambda: statuses.append(s.wait(timeline, 5)))
    thread.start()
    time.sleep(LOOK_NS / 1e9)
    s.works(s.api.timeline.destroy(s.handle, timeline), "timeline.destroy")
    thread.join(WAIT_NS / 1e9)
    expect(statuses and statuses[0] in (abi.BP_CANCELLED, BAD), f"the sleeper got {statuses}")


@case("timeline_wait_host", "negative")
def a_deadline_in_the_past_does_not_sleep(s: Subject) -> None:
    """It is a look."""
    status = s.wait(s.timeline(), 1, -WAIT_NS)
    s.refuses(status, abi.BP_DEADLINE, "a wait whose deadline has passed")


@case("timeline_wait_host", "negative")
def a_wait_for_nothing_is_refused(s: Subject) -> None:
    """A wild handle does not sleep."""
    s.refuses(s.wait(0, 1), BAD, "waiting for the handle 0")
