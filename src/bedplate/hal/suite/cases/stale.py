"""Handles in the wrong place: of a closed device, another device, another kind, another life.

Each function of the mandatory tables, and of those that are claimed, is asked
with a handle that was right once or is right elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bedplate.hal import abi
from bedplate.hal.batch import Batch
from bedplate.hal.buffer import Buffer
from bedplate.hal.native import ffi, new, text
from bedplate.hal.suite.registry import case
from bedplate.hal.suite.subject import Subject, expect

BAD = abi.BP_INVALID_ARGUMENT


def _memory(s: Subject) -> int:
    out = ffi.new("uint64_t *")
    info = new("bp_memory_info", bytes=64)
    s.works(s.api.mem.create(s.handle, info, out), "mem.create")
    return int(out[0])


def calls(s: Subject, device: int, handle: int) -> dict[str, Callable[[], int]]:
    """Every function that takes a device and an object, by name."""
    api, out = s.api, ffi.new("uint64_t *")
    return {
        "mem.release": lambda: api.mem.release(device, handle),
        "mem.describe": lambda: api.mem.describe(device, handle, new("bp_memory_info")),
        "queue.submit": lambda: api.queue.submit(device, handle, new("bp_batch")),
        "queue.flush": lambda: api.queue.flush(device, handle),
        "queue.destroy": lambda: api.queue.destroy(device, handle),
        "timeline.signal": lambda: api.timeline.signal(device, handle, 1 << 60),
        "timeline.query": lambda: api.timeline.query(device, handle, out),
        "timeline.wait_host": lambda: api.timeline.wait_host(device, handle, 1 << 61, 0),
        "timeline.destroy": lambda: api.timeline.destroy(device, handle),
    }


def _refuse_all(s: Subject, named: dict[str, Callable[[], int]], what: str, own: str = "") -> None:
    for name, call in named.items():
        if not own or not name.startswith(own):
            s.refuses(call(), BAD, f"{name} of {what}")


@case("core", "negative")
def a_closed_device_is_stale_everywhere(s: Subject) -> None:
    """Every function refuses it, with handles that were its own."""
    other = Subject(s.backend, s.index)
    made = (("mem", _memory(other)), ("queue", other.queue()), ("timeline", other.timeline()))
    device = other.handle
    other.close()
    for table, handle in made:
        named = calls(s, device, handle)
        own = {name: call for name, call in named.items() if name.startswith(table)}
        _refuse_all(s, own, "a closed device")


@case("mem", "negative")
def memory_is_only_memory(s: Subject) -> None:
    """No queue and no timeline, and unharmed after every try."""
    handle = _memory(s)
    _refuse_all(s, calls(s, s.handle, handle), "a memory", own="mem.")
    s.works(s.api.mem.release(s.handle, handle), "mem.release after the tries")


@case("queue", "negative")
def a_queue_is_only_a_queue(s: Subject) -> None:
    """No memory and no timeline, and it still works after every try."""
    queue, done = s.queue(), s.timeline()
    _refuse_all(s, calls(s, s.handle, queue), "a queue", own="queue.")
    s.works(s.submit(queue, Batch(), signal=[(done, 1)]), "queue.submit after the tries")
    s.works(s.wait(done, 1), "waiting after the tries")


@case("timeline", "negative")
def a_timeline_is_only_a_timeline(s: Subject) -> None:
    """No memory and no queue, and its value stays."""
    timeline = s.timeline(9)
    _refuse_all(s, calls(s, s.handle, timeline), "a timeline", own="timeline.")
    expect(s.value(timeline) == (abi.BP_OK, 9), "tries with a timeline changed it")


@case("mem", "negative")
def memory_of_another_device_is_unknown(s: Subject) -> None:
    """For describe, release, and in a command."""
    other = Subject(s.backend, s.index)
    try:
        foreign = _memory(other)
        info = new("bp_memory_info")
        s.refuses(s.api.mem.describe(s.handle, foreign, info), BAD, "describing foreign memory")
        s.refuses(s.api.mem.release(s.handle, foreign), BAD, "releasing foreign memory")
        batch = Batch()
        buffer = Buffer(s.device, foreign, 64, 0)
        batch.fill(buffer, 0)
        buffer.handle = 0
        s.refused_batch(batch, BAD, "a fill of foreign memory")
        s.works(other.api.mem.release(other.handle, foreign), "releasing it where it belongs")
    finally:
        other.close()


@case("queue", "negative")
def a_queue_of_another_device_is_unknown(s: Subject) -> None:
    """For submit, flush and destroy."""
    other = Subject(s.backend, s.index)
    try:
        named = calls(s, s.handle, other.queue())
        queues = {name: call for name, call in named.items() if name.startswith("queue.")}
        _refuse_all(s, queues, "another device's queue")
    finally:
        other.close()


@case("queue", "negative")
def fences_of_another_device_are_unknown(s: Subject) -> None:
    """To wait for and to signal; the foreign timeline does not move."""
    other = Subject(s.backend, s.index)
    try:
        foreign, queue = other.timeline(), s.queue()
        status = s.submit(queue, Batch(), wait=[(foreign, 0)])
        s.refuses(status, BAD, "waiting for another device's timeline")
        status = s.submit(queue, Batch(), signal=[(foreign, 1)])
        s.refuses(status, BAD, "signalling another device's timeline")
        expect(other.value(foreign) == (abi.BP_OK, 0), "a foreign timeline moved")
    finally:
        other.close()


@case("timeline", "negative")
def a_timeline_of_another_device_is_unknown(s: Subject) -> None:
    """For every function; it keeps its value."""
    other = Subject(s.backend, s.index)
    try:
        foreign = other.timeline(4)
        named = calls(s, s.handle, foreign)
        timelines = {name: call for name, call in named.items() if name.startswith("timeline.")}
        _refuse_all(s, timelines, "another device's timeline")
        expect(other.value(foreign) == (abi.BP_OK, 4), "a foreign timeline moved")
    finally:
        other.close()


@case("queue", "negative", catches=["stale_queue"])
def a_destroyed_queue_is_stale(s: Subject) -> None:
    """Submit, flush and a second destroy are refused; a fence of the refused batch stays."""
    queue, done = s.queue(), s.timeline()
    s.works(s.api.queue.destroy(s.handle, queue), "queue.destroy")
    status = s.submit(queue, Batch(), signal=[(done, 1)])
    s.refuses(status, BAD, "submitting to a destroyed queue")
    s.refuses(s.api.queue.flush(s.handle, queue), BAD, "flushing a destroyed queue")
    s.refuses(s.api.queue.destroy(s.handle, queue), BAD, "destroying a queue twice")
    expect(s.value(done) == (abi.BP_OK, 0), "a batch for a destroyed queue signalled")


@case("queue", "negative")
def no_place_for_a_queue(s: Subject) -> None:
    """A null info or result is refused, and so are unknown flags."""
    out = ffi.new("uint64_t *")
    s.refuses(s.api.queue.create(s.handle, ffi.NULL, out), BAD, "queue.create without info")
    info = new("bp_queue_info")
    s.refuses(s.api.queue.create(s.handle, info, ffi.NULL), BAD, "queue.create without a result")
    info.flags = 1 << 31
    s.refuses(s.api.queue.create(s.handle, info, out), BAD, "queue.create with unknown flags")


@case("queue", "positive")
def any_priority_is_a_queue(s: Subject) -> None:
    """Priorities are a wish: the lowest and the highest run work too."""
    for priority in (-(1 << 31), -1, 1, (1 << 31) - 1):
        out, done = ffi.new("uint64_t *"), s.timeline()
        info = new("bp_queue_info", priority=priority)
        s.works(s.api.queue.create(s.handle, info, out), f"a queue of priority {priority}")
        s.works(s.submit(int(out[0]), Batch(), signal=[(done, 1)]), "queue.submit")
        s.works(s.wait(done, 1), f"waiting for a queue of priority {priority}")


def _again(s: Subject, make: Callable[[], int], end: Callable[[int], int], kind: str) -> None:
    seen: set[int] = set()
    for _ in range(100):
        handle = make()
        expect(handle and handle not in seen, f"the {kind} handle 0x{handle:x} came twice")
        seen.add(handle)
        s.works(end(handle), f"giving a {kind} back")


@case("timeline", "positive", tier="full")
def timeline_handles_are_not_used_again(s: Subject) -> None:
    """A hundred lives, a hundred handles."""
    _again(s, s.timeline, lambda handle: s.api.timeline.destroy(s.handle, handle), "timeline")


@case("queue", "positive", tier="full")
def queue_handles_are_not_used_again(s: Subject) -> None:
    """A hundred lives, a hundred handles."""
    _again(s, s.queue, lambda handle: s.api.queue.destroy(s.handle, handle), "queue")


@case("core", "positive", tier="full")
def device_handles_are_not_used_again(s: Subject) -> None:
    """A hundred opens, a hundred handles."""

    def make() -> int:
        out = ffi.new("uint64_t *")
        s.works(s.api.core.open(s.index, out), "core.open")
        return int(out[0])

    _again(s, make, s.api.core.close, "device")


@case("module_native", "negative")
def a_module_is_only_a_module(s: Subject) -> None:
    """No memory, queue or timeline, and no kernel; a kernel is no module."""
    kernel = s.kernel("nothing")
    module: Any = kernel.module.handle
    _refuse_all(s, calls(s, s.handle, module), "a module")
    _refuse_all(s, calls(s, s.handle, kernel.handle), "a kernel")
    info, name = new("bp_module_info"), text("nothing")
    s.refuses(s.api.module.info(s.handle, kernel.handle, info), BAD, "module.info of a kernel")
    s.refuses(s.api.module.unload(s.handle, kernel.handle), BAD, "unloading a kernel")
    told = new("bp_kernel_info")
    s.refuses(s.api.module.kernel_info(s.handle, module, told), BAD, "kernel_info of a module")
    out = ffi.new("uint64_t *")
    status = s.api.module.kernel(s.handle, kernel.handle, name[0], out)
    s.refuses(status, BAD, "module.kernel of a kernel")
