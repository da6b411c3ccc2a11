"""Release while work is in flight: a handle is stale at once, what it named lives on.

A gate holds the work, so that what is released is certainly still needed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bedplate.hal import abi
from bedplate.hal.batch import U64, Batch
from bedplate.hal.native import new
from bedplate.hal.suite.cases.batches import fill
from bedplate.hal.suite.cases.ops import place, plan
from bedplate.hal.suite.registry import case
from bedplate.hal.suite.samples import sample_of
from bedplate.hal.suite.subject import Subject, expect

BAD = abi.BP_INVALID_ARGUMENT


def held(s: Subject, batch: Batch) -> Callable[[], None]:
    """Submit a batch behind a gate; the answer opens it and waits for the batch."""
    queue, gate, done = s.queue(), s.timeline(), s.timeline()
    s.works(s.submit(queue, batch, wait=[(gate, 1)], signal=[(done, 1)]), "queue.submit")

    def go() -> None:
        s.works(s.api.timeline.signal(s.handle, gate, 1), "timeline.signal")
        s.works(s.wait(done, 1), "waiting for a batch whose parts were released")

    return go


@case("mem", "positive", catches=["early_free"])
def released_bytes_stay_until_they_are_read(s: Subject) -> None:
    """What lay there before the release is what a held copy takes."""
    source, target = s.memory(4096, 0x3C), s.memory(4096)
    batch = Batch()
    batch.copy(target, source)
    go = held(s, batch)
    source.release()
    go()
    expect(s.content(target) == b"\x3c" * 4096, "released bytes changed before they were read")


@case("mem", "positive", tier="full")
def idle_queues_let_nothing_go(s: Subject) -> None:
    """Sixteen queues made after the one that holds a copy: its bytes stay all the same."""
    source, target = s.memory(4096, 0x3C), s.memory(4096)
    batch = Batch()
    batch.copy(target, source)
    go = held(s, batch)
    idle = [s.queue() for _ in range(16)]
    source.release()
    others = [s.memory(4096, 0x99) for _ in range(16)]
    go()
    expect(s.content(target) == b"\x3c" * 4096, "released bytes changed before they were read")
    del idle, others


@case("mem", "positive", tier="full")
def released_storage_is_not_given_away(s: Subject) -> None:
    """New memories of the same size, filled, do not reach what a held batch needs."""
    source, target = s.memory(8192, 0x11), s.memory(8192)
    batch = Batch()
    batch.copy(target, source)
    go = held(s, batch)
    source.release()
    others = [s.memory(8192, 0x99) for _ in range(32)]
    for other in others:
        s.completes(fill(other, 0x77), "a fill of new memory")
    go()
    expect(s.content(target) == b"\x11" * 8192, "new memory took the place of needed bytes")
    wrong = [i for i, other in enumerate(others) if s.content(other) != b"\x77" * 8192]
    expect(not wrong, f"new memories {wrong[:3]} were written by old work")


@case("mem", "negative")
def memory_in_flight_is_stale_at_once(s: Subject) -> None:
    """For new batches, for describe, for a second release."""
    source, target = s.memory(64), s.memory(64)
    batch = Batch()
    batch.copy(target, source)
    go = held(s, batch)
    handle = source.handle
    s.works(s.api.mem.release(s.handle, handle), "releasing memory in flight")
    source.handle = 0
    s.refused_batch(batch, BAD, "the same batch after the release")
    info = new("bp_memory_info")
    s.refuses(s.api.mem.describe(s.handle, handle, info), BAD, "mem.describe")
    s.refuses(s.api.mem.release(s.handle, handle), BAD, "a second release")
    go()


@case("mem", "positive")
def a_destination_may_be_released(s: Subject) -> None:
    """Nobody sees the bytes any more, but the batch runs and others are not harmed."""
    source, target, beside = s.memory(4096, 5), s.memory(4096), s.memory(4096, 6)
    batch = Batch()
    batch.copy(target, source)
    batch.copy(beside, source)
    go = held(s, batch)
    target.release()
    go()
    expect(s.content(beside) == b"\x05" * 4096, "the rest of the batch did not run")


@case("module_native", "positive")
def code_in_flight_survives_unload(s: Subject) -> None:
    """A held launch of an unloaded module still runs."""
    out, kernel = s.memory(4 * 64), s.kernel("count_blocks")
    batch = Batch()
    batch.launch(kernel, (64,), [out])
    go = held(s, batch)
    kernel.module.unload()
    go()
    words = np.frombuffer(s.content(out), "u4").tolist()
    expect(words == [1] * 64, "a launch of an unloaded module did not run")


@case("module_native", "negative")
def a_kernel_in_flight_is_stale_at_once(s: Subject) -> None:
    """Its handle is refused in new launches though old ones still run."""
    out, kernel = s.memory(4 * 8), s.kernel("count_blocks")
    batch = Batch()
    batch.launch(kernel, (8,), [out])
    go = held(s, batch)
    kernel.module.unload()
    s.refused_batch(batch, BAD, "a launch of an unloaded kernel")
    go()
    words = np.frombuffer(s.content(out), "u4").tolist()
    expect(words == [1] * 8, "the launch in flight did not run once")


@case("module_native", "positive")
def destroying_a_queue_ends_its_kernel(s: Subject) -> None:
    """destroy returns though a kernel waits for a flag that nobody sets; it is cancelled."""
    s.need("host_visible")
    flag, queue, done = s.memory(8), s.queue(), s.timeline()
    batch = Batch()
    batch.launch(s.kernel("hold"), (1,), [flag])
    s.works(s.submit(queue, batch, signal=[(done, 1)]), "queue.submit")
    seen = flag.view("u4")
    while not seen[1] and s.wait(done, 1, 1_000_000) == abi.BP_DEADLINE:
        pass
    s.works(s.api.queue.destroy(s.handle, queue), "queue.destroy")
    s.refuses(s.wait(done, 1), abi.BP_CANCELLED, "waiting for a cancelled kernel")


@case("core", "positive")
def closing_ends_what_is_held(s: Subject) -> None:
    """Close returns with batches behind gates that nobody opens, on several queues."""
    other = Subject(s.backend, s.index)
    gate, buffer = other.timeline(), other.memory(64)
    for _ in range(4):
        status = other.submit(other.queue(), fill(buffer, 1), wait=[(gate, 1)])
        other.works(status, "queue.submit")
    handle = other.handle
    del buffer
    other.close()
    s.refuses(s.api.core.close(handle), BAD, "closing again")


@case("module_native", "positive")
def closing_ends_a_running_kernel(s: Subject) -> None:
    """Close returns though a kernel waits for a flag that nobody sets."""
    s.need("host_visible")
    other = Subject(s.backend, s.index)
    queue, done = other.queue(), other.timeline()
    flag = other.memory(8)
    batch = Batch()
    batch.launch(other.kernel("hold"), (1,), [flag])
    other.works(other.submit(queue, batch, signal=[(done, 1)]), "queue.submit")
    handle = other.handle
    other.close()
    s.refuses(s.api.core.close(handle), BAD, "closing again")


@case("module_native", "positive", catches=["signal_before_work"])
def a_fault_leaves_the_queue_clean(s: Subject) -> None:
    """The next batch of the same queue runs, and a later fault has its own words."""
    queue, first, second, third = s.queue(), s.timeline(), s.timeline(), s.timeline()
    out = s.memory(4)
    for block, line in ((3, first), (5, third)):
        bad, good = Batch(), Batch()
        bad.launch(s.kernel("fail_at"), (8,), [U64(block)])
        good.launch(s.kernel("count_blocks"), (1,), [out])
        s.works(s.submit(queue, bad, signal=[(line, 1)]), "queue.submit")
        s.works(s.submit(queue, good, signal=[(second, block)]), "queue.submit")
        s.refuses(s.wait(line, 1), abi.BP_LAUNCH_FAULT, "waiting for a fault")
        expect(f"block {block} " in s.said(), f"a fault has another's words: {s.said()}")
        s.works(s.wait(second, block), "waiting for the batch behind a fault")
    expect(int.from_bytes(s.content(out), "little") == 2, "a batch behind a fault did not run")


@case("module_native", "positive", tier="full")
def a_fault_stays_in_its_queue(s: Subject) -> None:
    """Another queue's work beside it, without a fence between them, is whole."""
    bad, good = Batch(), Batch()
    out = s.memory(4 * 100)
    bad.launch(s.kernel("fail_at"), (1,), [U64(0)])
    good.launch(s.kernel("count_blocks"), (100,), [out])
    for turn in range(1, 21):
        failed, done = s.timeline(), s.timeline()
        s.works(s.submit(s.queue(), bad, signal=[(failed, 1)]), "queue.submit")
        s.works(s.submit(s.queue(), good, signal=[(done, 1)]), "queue.submit")
        s.works(s.wait(done, 1), "waiting for work beside a fault")
        s.refuses(s.wait(failed, 1), abi.BP_LAUNCH_FAULT, "waiting for a fault")
        words = np.frombuffer(s.content(out), "u4")
        expect((words == turn).all(), "work beside a fault is not whole")


@case("ops", "positive")
def a_plan_in_flight_survives_release(s: Subject) -> None:
    """Its handle is stale at once, the held command still runs."""
    sample = sample_of("convert")
    assert sample is not None
    tensors = place(s, "convert", sample)
    made = plan(s, "convert", tensors, {})
    batch = Batch()
    batch.op(made, tensors)
    go = held(s, batch)
    made.release()
    s.refused_batch(batch, BAD, "a command of a released plan")
    go()
    out = tensors[-1]
    assert out is not None
    expect(b"\xff\xff" not in s.content(out.buffer)[:8], "a command in flight did not run")
