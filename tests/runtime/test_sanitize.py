"""Replays that look for memory given out too early: what is found, and what is not."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import numpy as np
import pytest

from bedplate.runtime.api import (
    BadBlock,
    NumbersAllocator,
    OptionsInvalid,
    Trace,
    Tracer,
    load_trace,
    picture_text,
    replay,
    sanitize,
    write_csv,
    write_log,
)
from bedplate.runtime.trace import ALLOCATE, FREE, RECORD, SYNC, USE, USED_ON

MIB = 1 << 20
TRACES = Path(__file__).parents[2] / "benchmarks" / "runtime" / "traces"


def trace_of(*rows: tuple[int, int, int, int]) -> Trace:
    """Records of (action, name, bytes, stream)."""
    return np.array(
        [
            (i, name, size, stream, action, 2, 0, 0)
            for i, (action, name, size, stream) in enumerate(rows)
        ],
        RECORD,
    )


def job(*, told: bool, synced: bool = False) -> Trace:
    """A block of main that side copies from, freed, and main's next request."""
    with NumbersAllocator(1 << 30) as memory:
        tracer = Tracer(memory)
        main, side = memory.stream(), memory.stream()
        pool = memory.pool("activations")
        block = pool.allocate(4 * MIB, main)
        tracer.use(block, side)
        if told:
            block.used_on(side)
        if synced:
            tracer.sync(side)
        block.free()
        pool.allocate(4 * MIB, main)
        return tracer.trace()


def test_a_use_that_nobody_told_is_found_with_block_and_both_streams(tmp_path: Path) -> None:
    """torchrec #4231: copied on side, not recorded, freed, and overwritten on main."""
    (found,) = sanitize(job(told=False))
    assert (found.block, found.stream, found.second, found.second_stream) == (0, 1, 3, 0)
    assert found.work == 1
    assert "stream 0 gets the block of record 0" in str(found)
    assert "on which stream 1 may still be at work (record 1)" in str(found)
    assert sanitize(job(told=True)) == []
    assert sanitize(job(told=False, synced=True)) == []
    for write, name in ((write_csv, "job.csv"), (write_log, "job.bpt")):
        write(tmp_path / name, job(told=False))
        assert [str(reuse) for reuse in sanitize(load_trace(tmp_path / name))] == [str(found)]


def test_the_newest_work_is_named() -> None:
    """Of two uses of the same bytes the later one counts, also on a part of them."""
    rows = [(ALLOCATE, 1, MIB, 0), (USE, 1, 0, 1), (USE, 1, 0, 1), (FREE, 1, 0, 0)]
    (found,) = sanitize(trace_of(*rows, (ALLOCATE, 2, MIB, 0)))
    assert found.work == 2
    halves = [(ALLOCATE, 1, MIB // 2, 0), (ALLOCATE, 2, MIB // 2, 0), (FREE, 1, 0, 0)]
    again = [(FREE, 2, 0, 0), (ALLOCATE, 3, MIB, 1)]
    (found,) = sanitize(trace_of(*halves, *again), "best-fit")
    assert (found.block, found.work) == (0, 2)


def test_a_tracer_writes_what_it_hears() -> None:
    """Names, bytes, streams, pools; no time runs back."""
    with NumbersAllocator(1 << 30) as memory:
        tracer = Tracer(memory)
        main, side = memory.stream(), memory.stream()
        block = memory.pool("kv").allocate(5000, side)
        tracer.use(block, main)
        block.used_on(main)
        tracer.sync(main)
        block.free()
        trace = tracer.trace()
    at = block.address
    assert trace[["address", "bytes", "stream", "action", "pool"]].tolist() == [
        (at, 5000, 1, ALLOCATE, 1),
        (at, 0, 0, USE, 0),
        (at, 0, 0, USED_ON, 0),
        (0, 0, 0, SYNC, 0),
        (at, 0, 0, FREE, 0),
    ]
    assert (np.diff(trace["time_ns"].astype(np.int64)) >= 0).all()
    assert trace["time_ns"].max() < 3600 * 10**9, "time begins with the tracer"


def test_a_use_after_the_free_is_found() -> None:
    """Work on a block that was given back, whether or not somebody has it by then."""
    (found,) = sanitize(trace_of((ALLOCATE, 1, MIB, 0), (FREE, 1, 0, 0), (USE, 1, 0, 0)))
    assert "record 2: stream 0 uses the block of record 0" in str(found)
    assert "after its free (record 1)" in str(found)


@pytest.mark.parametrize("policy", ["bedplate", "bedplate-noremap"])
def test_our_allocator_waits_for_a_stream_that_others_ignore(policy: str) -> None:
    """Freed on one stream and asked for on another: ours takes other memory, best fit does not."""
    trace = trace_of((ALLOCATE, 1, MIB, 0), (FREE, 1, 0, 0), (ALLOCATE, 2, MIB, 1))
    assert sanitize(trace, policy) == []
    (found,) = sanitize(trace, "best-fit")
    assert (found.stream, found.second_stream) == (0, 1)
    waits = trace_of((ALLOCATE, 1, MIB, 0), (FREE, 1, 0, 0), (SYNC, 0, 0, 0), (ALLOCATE, 2, MIB, 1))
    assert sanitize(waits, "best-fit") == []


def drawn(seed: int, forgotten: float) -> tuple[Trace, int]:
    """A random job on three streams; uses are told but for a part of them. How many were not."""
    draw = random.Random(seed)
    rows: list[tuple[int, int, int, int]] = []
    live: dict[int, int] = {}
    missed = 0
    for name in range(1, 400):
        stream = draw.randrange(3)
        rows.append((ALLOCATE, name, draw.choice((3_000, 300_000, 5 * MIB)), stream))
        live[name] = stream
        if draw.random() < 0.5:
            block = draw.choice(list(live))
            other = draw.randrange(3)
            rows.append((USE, block, 0, other))
            if draw.random() >= forgotten:
                rows.append((USED_ON, block, 0, other))
            else:
                missed += other != live[block]
        if draw.random() < 0.1:
            rows.append((SYNC, 0, 0, draw.randrange(3)))
        while len(live) > 6 or (live and draw.random() < 0.3):
            block = draw.choice(list(live))
            rows.append((FREE, block, 0, live.pop(block)))
    return trace_of(*rows), missed


def ranges(trace: Trace, places: list[int]) -> int:
    """Unsafe reuses under given places, by looking at every pair of blocks."""
    work: list[tuple[int, int, int]] = []
    size_of: dict[int, tuple[int, int, int]] = {}
    found = 0
    for record, (_, name, size, stream, action, *_) in enumerate(trace.tolist()):
        if action == ALLOCATE:
            size_of[name] = (places[record], size, stream)
            start, end = places[record], places[record] + size
            others = {t for at, to, t in work if t != stream and at < end and start < to}
            found += len(others)
        elif action == SYNC:
            work = [entry for entry in work if entry[2] != stream]
        elif action in (USE, FREE):
            at, bytes, owner = size_of[name]
            work.append((at, at + bytes, owner if action == FREE else stream))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_told_jobs_are_clean_and_forgetful_ones_are_not(seed: int) -> None:
    """Ours never reuses too early what it was told of; a policy without streams as counted."""
    told, missed = drawn(seed, 0.0)
    assert missed == 0
    assert sanitize(told) == []
    assert sanitize(told, "bedplate-noremap") == []
    places = [int(place) for place in replay(told, "best-fit").places]
    assert len(sanitize(told, "best-fit")) == ranges(told, places) > 0
    forgetful, missed = drawn(seed, 0.8)
    assert missed > 10
    assert sanitize(forgetful) != []


def test_recorded_jobs_are_clean() -> None:
    """A job of two streams that PyTorch ran, under ours."""
    trace = load_trace(TRACES / "prefetch.csv.xz")
    assert len(np.unique(trace["stream"])) > 1
    assert sanitize(trace) == []


def test_placements_do_not_look_at_work() -> None:
    """Replays and pictures are those of the requests alone; an unknown action is refused."""
    full, _ = drawn(3, 0.5)
    requests = full[(full["action"] == ALLOCATE) | (full["action"] == FREE)]
    for policy in ("bedplate", "planned", "pytorch", "buddy"):
        with_work, without = replay(full, policy), replay(requests, policy)
        assert with_work.reserved_peak_bytes == without.reserved_peak_bytes
    assert picture_text(full, replay(full)).splitlines()[-1].startswith(" " * 12 + "bedplate")
    with pytest.raises(OptionsInvalid, match="unknown action"):
        replay(trace_of((6, 1, 0, 0)))


def test_a_tracer_hears_all_threads_and_no_free_that_failed() -> None:
    """Every request before its free, though four threads share addresses."""
    with NumbersAllocator(1 << 30) as memory:
        tracer = Tracer(memory)
        pool = memory.pool("kv")
        together = threading.Barrier(4)

        def work() -> None:
            together.wait()
            stream = memory.stream()
            for size in range(1, 200):
                block = pool.allocate(size * 1000, stream)
                block.free()
                with pytest.raises(BadBlock):
                    block.free()
            pool.allocate(0, stream).free()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        trace = tracer.trace()
    assert len(trace) == 4 * 199 * 2
    live: set[int] = set()
    for row in trace:
        if row["action"] == ALLOCATE:
            assert row["address"] not in live
            live.add(int(row["address"]))
        else:
            live.remove(int(row["address"]))
    assert len(np.unique(trace["thread"])) == 4
