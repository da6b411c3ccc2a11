"""Programs of streams that are wrong in a known way, and their correct twins, by seed.

Each family is one mistake from the field. `make` gives the records of the bad
program and of the twin, and the sites of the two that must be named; other
streams work beside them on memory of their own, and are in order.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from bedplate.runtime.api import Record, Span

SEEDS = range(5)


@dataclass(frozen=True)
class Pair:
    bad: list[Record]
    good: list[Record]
    sites: tuple[str, str]
    kind: str


Family = Callable[[random.Random], tuple[list[Record], list[Record], tuple[str, str], str]]
FAMILIES: dict[str, Family] = {}


def family(make: Family) -> Family:
    """Keep a family by its name."""
    FAMILIES[make.__name__] = make
    return make


def _spans(rng: random.Random, memory: str = "m") -> tuple[Span, Span]:
    """Two spans that share at least a byte."""
    first = Span(memory, rng.randrange(100), rng.randrange(8, 64))
    offset = rng.randrange(max(first.offset - 7, 0), first.offset + first.length)
    return first, Span(memory, offset, rng.randrange(8, 64))


def _work(stream: str, op: str, site: str, **fields: object) -> Record:
    return Record(stream, op, site=site, **fields)  # type: ignore[arg-type]


@family
def missing_wait(rng: random.Random):
    """A reader that does not wait for the writer."""
    one, two = _spans(rng)
    value = rng.randrange(1, 9)
    write = _work("a", "fill", "w", writes=[one], signals=[("t", value)])
    bad = _work("b", "copy", "r", reads=[two])
    good = _work("b", "copy", "r", reads=[two], waits=[("t", value)])
    return [write, bad], [write, good], ("w", "r"), "hazard"


@family
def wait_on_a_lower_value(rng: random.Random):
    """A wait that the batch before the writer ends."""
    one, two = _spans(rng)
    value = rng.randrange(1, 9)
    first = _work("a", "launch", "first", signals=[("t", value)])
    write = _work("a", "fill", "w", writes=[one], signals=[("t", value + 1)])
    bad = _work("b", "copy", "r", reads=[two], waits=[("t", value)])
    good = _work("b", "copy", "r", reads=[two], waits=[("t", value + 1)])
    return [first, write, bad], [first, write, good], ("w", "r"), "hazard"


@family
def wait_on_another_timeline(rng: random.Random):
    """A wait for a stream that has nothing to do with it."""
    one, two = _spans(rng)
    value = rng.randrange(1, 9)
    other = _work("c", "launch", "other", signals=[("u", value)])
    write = _work("a", "fill", "w", writes=[one], signals=[("t", value)])
    bad = _work("b", "copy", "r", reads=[two], waits=[("u", value)])
    good = _work("b", "copy", "r", reads=[two], waits=[("t", value)])
    return [other, write, bad], [other, write, good], ("w", "r"), "hazard"


@family
def reuse_before_fence(rng: random.Random):
    """Memory given out before its free was reached."""
    one, _ = _spans(rng)
    use = _work("side", "copy", "use", reads=[one], signals=[("s", 1)])
    free = _work("main", "free", "free", writes=[one], waits=[("s", 1)], signals=[("m", 1)])
    bad = _work("next", "allocate", "again", writes=[one])
    good = _work("next", "allocate", "again", writes=[one], waits=[("m", 1)])
    write = _work("next", "fill", "w", writes=[one])
    return [use, free, bad, write], [use, free, good, write], ("free", "again"), "use_after_free"


@family
def free_without_the_other_stream(rng: random.Random):
    """torchrec #4231: a copy on a side stream that the free does not know of."""
    one, two = _spans(rng)
    allocate = _work("main", "allocate", "new", writes=[one], signals=[("m", 1)])
    inside = Span("m", max(one.offset, two.offset), 1)
    use = _work("side", "copy", "use", reads=[inside], waits=[("m", 1)], signals=[("s", 1)])
    bad = _work("main", "free", "free", writes=[one])
    good = _work("main", "free", "free", writes=[one], waits=[("s", 1)])
    return [allocate, use, bad], [allocate, use, good], ("use", "free"), "use_after_free"


@family
def overlapping_copies(rng: random.Random):
    """Two copies whose targets share bytes."""
    length = rng.randrange(16, 64)
    near = Span("m", rng.randrange(1, length), length)
    far = Span("m", length, length)
    left = Span("m", 0, length)
    one = _work("a", "copy", "one", reads=[Span("x", 0, length)], writes=[left])
    bad = _work("b", "copy", "two", reads=[Span("y", 0, length)], writes=[near])
    good = _work("b", "copy", "two", reads=[Span("y", 0, length)], writes=[far])
    return [one, bad], [one, good], ("one", "two"), "hazard"


@family
def read_after_free(rng: random.Random):
    """A use behind the free on its own stream."""
    one, two = _spans(rng)
    inside = Span("m", max(one.offset, two.offset), 1)
    free = _work("main", "free", "free", writes=[one])
    read = _work("main", "copy", "r", reads=[inside])
    return [free, read], [read, free], ("free", "r"), "use_after_free"


@family
def read_after_free_on_another_stream(rng: random.Random):
    """A use that waits for the free instead of the other way round."""
    one, two = _spans(rng)
    inside = Span("m", max(one.offset, two.offset), 1)
    free = _work("main", "free", "free", writes=[one], signals=[("m", 1)])
    read = _work("side", "copy", "r", reads=[inside], waits=[("m", 1)])
    before = _work("side", "copy", "r", reads=[inside], signals=[("s", 1)])
    later = _work("main", "free", "free", writes=[one], waits=[("s", 1)])
    return [free, read], [before, later], ("free", "r"), "use_after_free"


@family
def double_free(rng: random.Random):
    """The same bytes freed twice, in order."""
    one, _ = _spans(rng)
    first = _work("main", "free", "first", writes=[one], signals=[("m", 1)])
    again = _work("side", "allocate", "new", writes=[one], waits=[("m", 1)])
    second = _work("side", "free", "second", writes=[one], waits=[("m", 1)])
    return [first, second], [first, again, second], ("first", "second"), "use_after_free"


@family
def overwritten_while_read(rng: random.Random):
    """A writer that does not wait for the reader."""
    one, two = _spans(rng)
    read = _work("a", "copy", "r", reads=[one], signals=[("t", 1)])
    bad = _work("b", "fill", "w", writes=[two])
    good = _work("b", "fill", "w", writes=[two], waits=[("t", 1)])
    return [read, bad], [read, good], ("r", "w"), "hazard"


@family
def signal_before_the_work(rng: random.Random):
    """The signal hangs on the batch before the one that works."""
    one, two = _spans(rng)
    early = _work("a", "launch", "early", signals=[("t", 1)])
    bare = _work("a", "fill", "w", writes=[one])
    plain = _work("a", "launch", "early")
    late = _work("a", "fill", "w", writes=[one], signals=[("t", 1)])
    read = _work("b", "copy", "r", reads=[two], waits=[("t", 1)])
    return [early, bare, read], [plain, late, read], ("w", "r"), "hazard"


@family
def wait_after_the_work(rng: random.Random):
    """The wait hangs on the batch behind the one that works."""
    one, two = _spans(rng)
    write = _work("a", "fill", "w", writes=[one], signals=[("t", 1)])
    read, late = _work("b", "copy", "r", reads=[two]), _work("b", "launch", "x", waits=[("t", 1)])
    early = _work("b", "launch", "x", waits=[("t", 1)])
    return [write, read, late], [write, early, read], ("w", "r"), "hazard"


@family
def broken_chain(rng: random.Random):
    """Order through a third stream, whose wait is for the wrong batch."""
    one, two = _spans(rng)
    first = _work("a", "launch", "first", signals=[("t", 1)])
    write = _work("a", "fill", "w", writes=[one], signals=[("t", 2)])
    bad = _work("c", "launch", "between", waits=[("t", 1)], signals=[("u", 1)])
    good = _work("c", "launch", "between", waits=[("t", 2)], signals=[("u", 1)])
    read = _work("b", "copy", "r", reads=[two], waits=[("u", 1)])
    return [first, write, bad, read], [first, write, good, read], ("w", "r"), "hazard"


def make(name: str, seed: int) -> Pair:
    """The pair of a family, its records spread among others that are in order."""
    rng = random.Random(f"{name} {seed}")
    bad, good, sites, kind = FAMILIES[name](rng)
    state = rng.getstate()
    programs = []
    for program in (bad, good):
        rng.setstate(state)
        programs.append(_among_others(program, rng))
    return Pair(programs[0], programs[1], sites, kind)


def _among_others(program: list[Record], rng: random.Random) -> list[Record]:
    others = []
    for step in range(rng.randrange(4, 20)):
        span = Span("other", 8 * step, 8)
        others.append(_work("p", "fill", f"p{step}", writes=[span], signals=[("p", step + 1)]))
        others.append(_work("q", "copy", f"q{step}", reads=[span], waits=[("p", step + 1)]))
    mixed = list(others)
    place = 0
    for record in program:
        place = rng.randint(place, len(mixed))
        mixed.insert(place, record)
        place += 1
    return mixed
