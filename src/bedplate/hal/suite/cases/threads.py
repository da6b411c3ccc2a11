"""Several threads on one device: what may run at once, and races that must end in a status."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from bedplate.hal import abi
from bedplate.hal.batch import Batch
from bedplate.hal.buffer import Range
from bedplate.hal.device import read_claims
from bedplate.hal.native import ffi, new
from bedplate.hal.suite.cases.batches import fill
from bedplate.hal.suite.cases.mem import create
from bedplate.hal.suite.cases.text import fail, read
from bedplate.hal.suite.registry import case
from bedplate.hal.suite.subject import WAIT_NS, Subject, expect

BAD = abi.BP_INVALID_ARGUMENT
THREADS = 4


def together(body: Callable[[int], None], count: int = THREADS) -> None:
    """Run `body(0)` to `body(count - 1)` at once; the first failure is the case's."""
    failures: list[Exception] = []
    start = threading.Barrier(count)

    def run(number: int) -> None:
        start.wait()
        try:
            body(number)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(4 * WAIT_NS / 1e9)
        expect(not thread.is_alive(), "a thread did not come back")
    if failures:
        raise failures[0]


@case("mem", "positive", tier="full")
def threads_make_memory_at_once(s: Subject) -> None:
    """All handles differ, and each thread's sizes are its own."""
    made: list[int] = []

    def body(number: int) -> None:
        for turn in range(100):
            size = 1 + 1000 * number + turn
            status, handle = create(s, bytes=size)
            s.works(status, "mem.create")
            info = new("bp_memory_info")
            s.works(s.api.mem.describe(s.handle, handle, info), "mem.describe")
            expect(info.bytes == size, f"a memory of {size} bytes says {info.bytes}")
            made.append(handle)
            if turn % 2:
                s.works(s.api.mem.release(s.handle, handle), "mem.release")

    together(body)
    expect(len(set(made)) == len(made) == 400, "two threads got one handle")


@case("queue", "positive", tier="full")
def threads_share_a_queue(s: Subject) -> None:
    """Batches of each thread stay in its order, and none is lost."""
    queue, buffer = s.queue(), s.memory(4 * THREADS)
    done = [s.timeline() for _ in range(THREADS)]

    def body(number: int) -> None:
        place = Range(buffer, 4 * number, 4)
        for turn in range(1, 101):
            batch = Batch()
            batch.fill(place, turn)
            s.works(s.submit(queue, batch, signal=[(done[number], turn)]), "queue.submit")

    together(body)
    for timeline in done:
        s.works(s.wait(timeline, 100), "waiting for a thread's batches")
    words = np.frombuffer(s.content(buffer), "u4").tolist()
    expect(words == [100] * THREADS, f"the last batches of the threads left {words}")


@case("queue", "positive", tier="full")
def threads_have_queues_of_their_own(s: Subject) -> None:
    """Made, used and destroyed beside each other."""
    buffers = [s.memory(64) for _ in range(THREADS)]

    def body(number: int) -> None:
        for turn in range(1, 11):
            queue, done = s.queue(), s.timeline()
            batch = fill(buffers[number], 16 * number + turn)
            s.works(s.submit(queue, batch, signal=[(done, 1)]), "queue.submit")
            s.works(s.wait(done, 1), "waiting for a thread's queue")
            s.works(s.api.queue.destroy(s.handle, queue), "queue.destroy")

    together(body)
    for number, buffer in enumerate(buffers):
        expect(s.content(buffer) == bytes([16 * number + 10]) * 64, f"thread {number}'s work")


@case("timeline", "positive", tier="full")
def threads_race_to_signal(s: Subject) -> None:
    """Whoever is late is refused; the value is the largest, and was never lower."""
    line = s.timeline()

    def body(number: int) -> None:
        for value in range(number + 1, 1001, THREADS):
            status = s.api.timeline.signal(s.handle, line, value)
            expect(status in (abi.BP_OK, BAD), f"a racing signal gave {status}")
            expect(s.value(line)[1] >= value, f"behind a signal to {value} it is lower")

    together(body)
    expect(s.value(line) == (abi.BP_OK, 1000), f"after the race it is at {s.value(line)}")


@case("timeline", "positive", tier="full")
def threads_make_timelines_at_once(s: Subject) -> None:
    """Made, moved and destroyed; none meets another's value."""

    def body(number: int) -> None:
        for turn in range(100):
            line = s.timeline(1000 * number + turn)
            s.works(s.api.timeline.signal(s.handle, line, 1000 * number + turn + 1), "signal")
            wanted = (abi.BP_OK, 1000 * number + turn + 1)
            expect(s.value(line) == wanted, "a timeline has another thread's value")
            s.works(s.api.timeline.destroy(s.handle, line), "timeline.destroy")

    together(body)


@case("core", "positive", tier="full")
def threads_open_and_close_at_once(s: Subject) -> None:
    """Each with a device of its own, and work on it."""

    def body(number: int) -> None:
        for turn in range(5):
            other = Subject(s.backend, s.index)
            try:
                buffer = other.memory(64)
                other.completes(fill(buffer, 8 * number + turn), "a fill on a thread's device")
                wanted = bytes([8 * number + turn]) * 64
                expect(other.content(buffer) == wanted, "a device did another's work")
            finally:
                other.close()

    together(body)


@case("core", "positive", tier="full")
def threads_read_their_own_text(s: Subject) -> None:
    """Each fails in its own way, many times; the number in the text is its own."""

    def body(number: int) -> None:
        for turn in range(50):
            mine = 100 * (number + 1) + turn
            fail(s, mine)
            text = read(s)[0].split(b"\0")[0].decode()
            expect(str(3 + 2 * mine) in text, f"thread {number} reads another's text: {text}")

    together(body)


@case("core", "positive", tier="full")
def threads_ask_for_facts_at_once(s: Subject) -> None:
    """Properties and claims agree in all of them."""
    wanted = read_claims(s.backend, s.index)

    def body(number: int) -> None:
        for _ in range(50):
            expect(read_claims(s.backend, s.index) == wanted, "claims differ between threads")
            facts = new("bp_device_properties")
            s.works(s.api.core.properties(s.index, facts), "core.properties")
            expect(facts.memory_bytes == s.info.memory_bytes, "facts differ between threads")

    together(body)


@case("queue", "positive", tier="full")
def a_destroyed_queue_answers_racing_submits(s: Subject) -> None:
    """Each is refused, or its signal ends in the value or CANCELLED: none is lost."""
    for _ in range(10):
        queue = s.queue()
        taken: list[int] = []

        def body(number: int, queue: int = queue, taken: list[int] = taken) -> None:
            if number == 0:
                s.works(s.api.queue.destroy(s.handle, queue), "queue.destroy")
                return
            for _ in range(20):
                done = s.timeline()
                status = s.submit(queue, Batch(), signal=[(done, 1)])
                expect(status in (abi.BP_OK, BAD), f"a racing submit gave {status}")
                if status == abi.BP_OK:
                    taken.append(done)

        together(body, 3)
        for done in taken:
            status = s.wait(done, 1)
            expect(status in (abi.BP_OK, abi.BP_CANCELLED), f"a racing batch ended in {status}")


@case("mem", "positive", tier="full")
def release_races_describe(s: Subject) -> None:
    """A look is right or refused, never something between; one release of many works."""
    for _ in range(50):
        handle = create(s, bytes=4242)[1]
        released: list[int] = []

        def body(number: int, handle: int = handle, released: list[int] = released) -> None:
            if number < 2:
                released.append(int(s.api.mem.release(s.handle, handle)))
                return
            info = new("bp_memory_info")
            status = s.api.mem.describe(s.handle, handle, info)
            right = info.bytes == (4242 if status == abi.BP_OK else 0)
            expect(right, f"a racing describe gave {status} and {info.bytes} bytes")

        together(body)
        expect(sorted(released) == [BAD, abi.BP_OK], f"two releases gave {released}")


@case("core", "positive", tier="full")
def closing_races_calls(s: Subject) -> None:
    """Other threads get OK, CANCELLED or INVALID_ARGUMENT, and in the end only the last."""
    for _ in range(10):
        other, closed = Subject(s.backend, s.index), threading.Event()

        def body(number: int, other: Subject = other, closed: threading.Event = closed) -> None:
            if number == 0:
                other.close()
                closed.set()
                return
            out, last = ffi.new("uint64_t *"), abi.BP_OK
            while not closed.is_set():
                last = other.api.timeline.create(other.handle or 1, 0, out)
                known = (abi.BP_OK, abi.BP_CANCELLED, BAD)
                expect(last in known, f"a call beside close gave {last}")

        together(body)


@case("core", "positive", tier="full")
def one_close_of_many_works(s: Subject) -> None:
    """Threads that close the same device: one succeeds, the others are refused."""
    for _ in range(10):
        out = ffi.new("uint64_t *")
        statuses: list[int] = []
        s.works(s.api.core.open(s.index, out), "core.open")
        handle = int(out[0])

        def body(number: int, handle: int = handle, statuses: list[int] = statuses) -> None:
            statuses.append(int(s.api.core.close(handle)))

        together(body)
        expect(sorted(statuses) == [BAD] * 3 + [abi.BP_OK], f"four closes gave {statuses}")


@case("module_native", "positive", tier="full")
def threads_load_modules_at_once(s: Subject) -> None:
    """Loaded, asked for a kernel and unloaded beside each other; each kernel runs."""

    def body(number: int) -> None:
        for _ in range(5):
            module = s.device.load_native_module(s.code_path("native"))
            out = s.memory(4 * 8)
            batch = Batch()
            batch.launch(module.kernel("count_blocks"), (8,), [out])
            s.completes(batch, "a launch of a thread's module")
            words = np.frombuffer(s.content(out), "u4").tolist()
            expect(words == [1] * 8, f"a thread's kernel left {words}")
            module.unload()

    together(body)
