"""The happens-before checker: seeded mistakes and their twins, and all orders of small programs."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.programs import FAMILIES, SEEDS, make

from bedplate.hal.api import Batch, Device, Module, pack_attributes
from bedplate.runtime.api import (
    Checker,
    HazardFound,
    NumbersAllocator,
    OptionsInvalid,
    Record,
    Scheduler,
    Span,
    span_of,
)

PROGRAMS = [(name, seed) for name in FAMILIES for seed in SEEDS]


def test_there_are_enough_programs() -> None:
    """At least 40 bad ones, no two alike."""
    bad = {str([(r, r.reads, r.writes, r.waits) for r in make(*p).bad]) for p in PROGRAMS}
    assert len(bad) == len(PROGRAMS) >= 40


@pytest.mark.parametrize(("name", "seed"), PROGRAMS)
def test_a_mistake_is_found_and_its_twin_is_clean(name: str, seed: int) -> None:
    """Both sites are named, and nothing is said of the program without the mistake."""
    pair = make(name, seed)
    found = Checker(pair.bad).findings()
    named = [{h.first.site, h.second.site} for h in found if h.second and h.kind == pair.kind]
    assert set(pair.sites) in named, found
    for hazard in found:
        assert hazard.first.site in str(hazard)
    assert Checker(pair.good).findings() == []


def test_a_wait_that_nobody_ends_is_found() -> None:
    """And so is a circle of two waits."""
    (never,) = Checker([Record("a", "launch", waits=[("t", 3)], site="x")]).findings()
    assert (never.kind, never.first.site) == ("never", "x")
    circle = [
        Record("a", "launch", waits=[("t", 1)], signals=[("u", 1)], site="x"),
        Record("b", "launch", waits=[("u", 1)], signals=[("t", 1)], site="y"),
    ]
    assert {h.kind for h in Checker(circle).findings()} == {"never"}


def test_signals_that_nothing_orders_are_found() -> None:
    """Two streams move a timeline; with a wait between them all is well."""
    one = Record("a", "launch", signals=[("t", 1)], site="x")
    two = Record("b", "launch", signals=[("t", 2)], site="y")
    (found,) = Checker([one, two]).findings()
    assert (found.kind, found.first.site) == ("signals", "x")
    ordered = Record("b", "launch", waits=[("t", 1)], signals=[("t", 2)], site="y")
    assert Checker([one, ordered]).findings() == []
    twice = Checker([one, Record("a", "launch", signals=[("t", 1)], site="y")]).findings()
    assert [h.kind for h in twice] == ["signals"]


def test_a_find_raises_and_names_this_file() -> None:
    """The site of a record is the line that made it."""
    checker = Checker()
    checker.add(Record("a", "fill", writes=[Span(1, 0, 8)]))
    checker.require_clean()
    checker.add(Record("b", "fill", writes=[Span(1, 7, 8)]))
    with pytest.raises(HazardFound, match=r"test_checker.py:\d+ and fill on b.*test_checker.py"):
        checker.require_clean()


def test_a_span_without_bytes_is_refused() -> None:
    """It would overlap nothing, whatever it stands for."""
    with pytest.raises(OptionsInvalid, match="at least one byte"):
        Checker([Record("a", "fill", writes=[Span(1, 0, 0)])])


def test_forty_thousand_records_are_checked() -> None:
    """The work does not grow with the square of the program."""
    records = []
    for step in range(1, 20_001):
        span = Span("m", step % 64 * 8, 8)
        back = [("q", step - 64)] if step > 64 else []
        records.append(
            Record("p", "fill", writes=[span], waits=back, signals=[("p", step)], site="w")
        )
        records.append(
            Record("q", "copy", reads=[span], waits=[("p", step)], signals=[("q", step)], site="r")
        )
    assert Checker(records).findings() == []


# The oracle: every order that the rules allow, one by one.


def orders(program: list[Record]) -> tuple[set[tuple[int, ...]], bool, bool]:
    """All legal orders as far as they go, whether each is whole, whether all signals grow."""
    rows: dict[object, list[int]] = {}
    for index, record in enumerate(program):
        rows.setdefault(record.stream, []).append(index)
    found: set[tuple[int, ...]] = set()
    flags = {"whole": True, "grow": True}

    def go(done: tuple[int, ...], reached: dict[object, int]) -> None:
        stuck = True
        for row in rows.values():
            place = next((i for i in row if i not in done), None)
            if place is None:
                continue
            record = program[place]
            if any(reached.get(t, 0) < v for t, v in record.waits):
                continue
            stuck = False
            if any(reached.get(t, 0) >= v for t, v in record.signals):
                flags["grow"] = False
                continue
            go((*done, place), reached | dict(record.signals))
        if stuck:
            found.add(done)
            flags["whole"] &= len(done) == len(program)

    go((), {})
    return found, flags["whole"], flags["grow"]


def conflicts(one: Record, two: Record) -> bool:
    """Whether they are of two streams, share a byte, and one writes it."""
    if one.stream == two.stream:
        return False

    def meet(left: object, right: object) -> bool:
        return any(
            a.memory == b.memory
            and a.offset < b.offset + b.length
            and b.offset < a.offset + a.length
            for a, b in itertools.product(left, right)  # type: ignore[call-overload]
        )

    return meet(one.writes, [*two.reads, *two.writes]) or meet(one.reads, two.writes)


def races(program: list[Record], found: set[tuple[int, ...]]) -> set[frozenset[object]]:
    """Pairs of streams with a conflict that goes either way, by the orders."""
    pairs = set()
    for i, j in itertools.combinations(range(len(program)), 2):
        if not conflicts(program[i], program[j]):
            continue
        first = {o.index(i) < o.index(j) for o in found if i in o and j in o}
        if first == {True, False}:
            pairs.add(frozenset((program[i].stream, program[j].stream)))
    return pairs


spans = st.builds(Span, st.just("m"), st.integers(0, 3), st.integers(1, 2))
points = st.tuples(st.sampled_from("tu"), st.integers(1, 3))
records = st.builds(
    Record,
    st.sampled_from("abc"),
    st.just("work"),
    st.lists(spans, max_size=1),
    st.lists(spans, max_size=1),
    st.lists(points, max_size=1),
    st.lists(points, max_size=1),
    st.just("here"),
)


def compare(program: list[Record]) -> str:
    """Hold the checker against the orders; which way the program went."""
    found, whole, grow = orders(program)
    findings = Checker(program).findings()
    kinds = {h.kind for h in findings}
    if not grow:
        assert kinds & {"signals", "never"}, program
        return "signals"
    if "signals" in kinds:
        # Only a program none of whose orders puts them wrongly because it never gets there.
        assert not whole, program
        return "stuck"
    assert ("never" in kinds) == (not whole), program
    hazards = {frozenset((h.first.stream, h.second.stream)) for h in findings if h.second}
    if whole:
        assert hazards == races(program, found), program
        return "racy" if hazards else "clean"
    return "stuck"


@settings(max_examples=300, deadline=None)
@given(st.lists(records, min_size=2, max_size=7))
def test_the_checker_agrees_with_all_orders(program: list[Record]) -> None:
    """A hazard is found exactly when two conflicting accesses can come either way round."""
    compare(program)


def test_the_orders_cover_every_kind_of_program() -> None:
    """The same by seed, and the drawn programs are of all kinds."""
    seen: dict[str, int] = {}
    for seed in range(1500):
        rng = random.Random(seed)
        last = {"t": 0, "u": 0}
        program = []
        for _ in range(rng.randrange(3, 8)):
            signals = []
            if rng.random() < 0.6:
                timeline = rng.choice("tu")
                last[timeline] += 1
                signals = [(timeline, last[timeline])]
            waits = []
            if rng.random() < 0.5:
                timeline = rng.choice("tu")
                known = last[timeline] if rng.random() < 0.9 else 3
                waits = [(timeline, rng.randint(min(known, 1), known))]
            span = [Span("m", rng.randrange(4), rng.randrange(1, 3))]
            reads, writes = (span, []) if rng.random() < 0.5 else ([], span)
            stream = {"t": "a", "u": "b"}[signals[0][0]] if signals else rng.choice("abc")
            program.append(Record(stream, "work", reads, writes, waits, signals, "here"))
        way = compare(program)
        seen[way] = seen.get(way, 0) + 1
    assert all(seen.get(way, 0) > 50 for way in ("clean", "racy", "stuck")), seen


def test_a_scheduler_knows_what_a_batch_uses(device: Device) -> None:
    """Unsaid, it is what the commands use: a copy without a wait for its source is a hazard."""
    x, y = (device.upload(np.zeros(64, "u4")) for _ in range(2))
    for waits, kinds in ((False, ["hazard"]), (True, [])):
        checker = Checker()
        with Scheduler(device, checker=checker) as work:
            main, side = work.stream(), work.stream()
            write, copy = Batch(), Batch()
            write.fill(x, 7)
            copy.copy(y, x)
            written = main.submit(write)
            side.submit(copy, wait=[written] if waits else [])
            side.submit(wait=[written], tag=9)
            main.submit(write, reads=[y], wait=[(side.timeline, 2)])
            main.synchronize()
            side.synchronize()
        *_, fences_alone, said = checker.records
        assert (list(fences_alone.writes), fences_alone.op) == ([], "batch 9")
        assert ([span.length for span in said.reads], list(said.writes)) == ([256], [])
        assert [finding.kind for finding in checker.findings()] == kinds


def test_a_batch_says_what_its_commands_use(device: Device, kernels: Module) -> None:
    """Ops by the roles of their tensors, kernels everything as written, nothing once cleared."""
    a, b, c = (device.upload(np.zeros((4, 4), "f4")) for _ in range(3))
    plan = device.plan_op("softmax", [a, None, c], pack_attributes("softmax", scale=1.0))
    batch = Batch()
    batch.op(plan, [a, None, c])
    batch.timestamp(b)
    reads, writes = batch.uses()
    assert [span.buffer for span in reads] == [a.buffer]
    assert [(span.buffer, span.length) for span in writes] == [(c.buffer, 64), (b.buffer, 8)]
    batch.launch(kernels.kernel("hold"), (1,), [a])
    assert batch.uses()[1][-1].buffer is a.buffer
    batch.clear()
    assert batch.uses() == ([], [])


def test_the_bytes_of_a_block_are_named_as_commands_name_them() -> None:
    """By address where that is all there is, else by the memory and where in it."""
    for piece in (2 << 20, 0):
        with NumbersAllocator(1 << 30, piece=piece) as memory:
            pool, stream = memory.pool("kv"), memory.stream()
            pool.allocate(5000, stream)
            block = pool.allocate(5000, stream)
            span = span_of(block)
            assert span.length == block.bytes
            if piece:
                assert (span.memory, span.offset) == ("address", block.address)
            else:
                assert (span.memory, span.offset) == (block.memory, block.offset)
                assert span.offset > 0
