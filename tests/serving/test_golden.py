"""Our logits against transformers on the same weights: 50 prompts, three formats.

Teacher-forced: every position of a prompt is compared. The stored values are
transformers' (see golden/make.py); the bounds are derived from the formats. A step
of the model is what costs: `make test` holds each format to every second short prompt
and to one of every longer class, another than the next format's; `make soak` to all. What
one prompt gives alone is computed once, for all tests of a format that ask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.serving.golden import compare

from bedplate.serving.api import Engine, EngineOptions, Precision, Sampling

LONGEST = 2048
SHORT = 40  # tokens; up to here two formats share all prompts
# What changes with the length: many blocks; a step as long as it may be, and several.
CLASSES = ((SHORT, 120), (120, 256), (512, 1000))
# Rows a step may hold: kernels have tiles of their own for few rows.
FEW, MANY = 8, 256
# (least, most) of the rms error over all prompts, in derived standard deviations. Measured: 0.15,
# 0.84, 0.86.
RMS = {
    Precision.FLOAT32: (0.08, 0.4),
    Precision.BFLOAT16: (0.6, 1.05),
    Precision.QUANTIZED: (0.6, 1.05),
}
# Share of positions with the reference's best token. Measured: 1.000, 0.991, 0.965.
AGREEMENT = {Precision.FLOAT32: 0.99, Precision.BFLOAT16: 0.97, Precision.QUANTIZED: 0.94}
IN_TURN = (Precision.BFLOAT16, Precision.QUANTIZED, Precision.FLOAT32)
ENGINES = {
    "float32": (Precision.FLOAT32, MANY),
    "bfloat16": (Precision.BFLOAT16, MANY),
    "quantized-many-rows": (Precision.QUANTIZED, MANY),
    "quantized-few-rows": (Precision.QUANTIZED, FEW),
}
FORMATS = {name: made for name, made in ENGINES.items() if made[1] == MANY}
each_format = pytest.mark.parametrize(
    "engine", FORMATS.values(), ids=FORMATS, indirect=True, scope="module"
)
"""For what does not change with the rows of a step."""


@pytest.fixture(scope="module")
def expected() -> list[compare.Expected]:
    """The golden file."""
    from bedplate.serving.gguf_model import GgufModel
    from bedplate.serving.packaged import find_model

    return compare.load(GgufModel(find_model("smollm2")).tokenizer().encode)


@pytest.fixture(scope="module", params=ENGINES.values(), ids=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """The default model in one format; `form` names the bound to hold it to."""
    precision, rows = request.param
    options = EngineOptions(
        precision=precision,
        max_model_tokens=LONGEST,
        max_running=MANY,  # as many logits rows in one step
        max_batched_tokens=rows,
        prefix_sharing=False,
    )
    with Engine("smollm2", options) as found:
        yield found


Score = Callable[[compare.Expected], NDArray[np.float32]]


@pytest.fixture(scope="module")
def alone(engine: Engine) -> Score:
    """The logits of a prompt that is scored by itself; short ones are kept."""
    kept: dict[int, NDArray[np.float32]] = {}

    def score(e: compare.Expected) -> NDArray[np.float32]:
        if id(e) in kept:
            return kept[id(e)]
        logits = engine.score(e.ids)
        if len(e.ids) <= SHORT:
            kept[id(e)] = logits
        return logits

    return score


def short(expected: list[compare.Expected], precision: Precision) -> list[compare.Expected]:
    """The short prompts of this format: every second one by length, the others the next's."""
    ordered = [e for e in sorted(expected, key=lambda e: len(e.ids)) if len(e.ids) <= SHORT]
    return ordered[IN_TURN.index(precision) % 2 :: 2]


def in_turn(expected: list[compare.Expected], precision: Precision) -> list[compare.Expected]:
    """The longer prompts that `make test` holds this format to: one of each class, by length."""
    place, ordered = IN_TURN.index(precision), sorted(expected, key=lambda e: len(e.ids))
    chosen = []
    for above, most in CLASSES:
        (*_, one) = [e for e in ordered if above < len(e.ids) <= most][: place + 1]
        chosen.append(one)
    return chosen


def hold_alone(engine: Engine, alone: Score, chosen: list[compare.Expected]) -> None:
    """Score each prompt by itself and hold its logits to the engine's format."""
    form, tally = engine.precision.value, compare.Tally()
    problems = {
        i: found for i, e in enumerate(chosen) if (found := compare.check(e, alone(e), form, tally))
    }
    assert problems == {}
    assert tally.decided > 0.05 * tally.positions
    assert gates(tally, engine.precision) == []


def gates(tally: compare.Tally, precision: Precision) -> list[str]:
    """What of a comparison lies outside of what is measured for the format."""
    least, most = RMS[precision]
    problems = []
    if not least <= tally.rms_sigmas <= most:
        problems.append(f"the errors' rms is {tally.rms_sigmas:.3f} sigmas")
    if not tally.agreed >= AGREEMENT[precision] * tally.positions:
        problems.append(f"{tally.agreed} of {tally.positions} best tokens agree")
    return problems


@pytest.mark.timeout(300)
def test_prompts_alone_are_within_their_bound(
    engine: Engine, alone: Score, expected: list[compare.Expected]
) -> None:
    """Logits and digests within the derived bound, the same best token where it is decided."""
    chosen = [*short(expected, engine.precision), *in_turn(expected, engine.precision)]
    if engine.limits.max_batched_tokens == FEW:  # more steps of the same kind are left out
        chosen = [e for e in chosen if len(e.ids) <= 120]
    hold_alone(engine, alone, chosen)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_every_prompt_in_every_format(
    engine: Engine, alone: Score, expected: list[compare.Expected]
) -> None:
    """What `make test` spreads over the formats, all of it."""
    hold_alone(engine, alone, expected)


def test_the_formats_have_prompts_of_their_own(expected: list[compare.Expected]) -> None:
    """Each is held to every class of lengths, no two to the same longer prompt; together to
    every short one."""
    turns = [in_turn(expected, precision) for precision in IN_TURN]
    assert len({len(e.ids) for turn in turns for e in turn}) == 3 * len(CLASSES)
    for turn in turns:
        for e, (above, most) in zip(turn, CLASSES, strict=True):
            assert above < len(e.ids) <= most
    shared = [id(e) for precision in IN_TURN[:2] for e in short(expected, precision)]
    assert sorted(shared) == sorted(id(e) for e in expected if len(e.ids) <= SHORT)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", [16, pytest.param(32, marks=pytest.mark.soak)])
def test_the_same_prompts_inside_a_batch(
    engine: Engine, alone: Score, expected: list[compare.Expected], count: int
) -> None:
    """Prompts scored at once share every step, and stay within the same bounds."""
    form, tally = engine.precision.value, compare.Tally()
    chosen = short(expected, engine.precision)
    if count > len(chosen):
        chosen = sorted(expected, key=lambda e: len(e.ids))
    chosen = chosen[:count]
    with ThreadPoolExecutor(count) as pool:
        scores = list(pool.map(lambda e: engine.score(e.ids), chosen))
    problems = {
        i: found
        for i, (e, s) in enumerate(zip(chosen, scores, strict=True))
        if (found := compare.check(e, s, form, tally))
    }
    assert problems == {}
    assert gates(tally, engine.precision) == []
    for e, together in zip(chosen, scores, strict=True):
        apart = together - alone(e)
        # Company may change the order of float32 sums, nothing else. Measured: nothing at all.
        assert (np.sqrt((apart**2).mean(1)) <= 0.25 * e.sigma[form]).all()


@each_format
def test_the_check_refuses_wrong_logits(engine: Engine, expected: list[compare.Expected]) -> None:
    """Zeros, rows of another position, another vocabulary order, NaN, a scale, noise on every
    logit, a fiftieth of the vocabulary zero: all found."""
    form, e = engine.precision.value, next(e for e in expected if 40 <= len(e.ids) <= 300)
    logits = engine.score(e.ids)
    rng = np.random.default_rng(0)
    columns = np.arange(logits.shape[1])
    chosen = np.isin(columns, rng.choice(columns, 1024, replace=False))
    broken = {
        "noise": logits + rng.normal(0, 0.3, logits.shape).astype(np.float32),
        "first columns zero": np.where(columns < 1024, 0, logits),
        "last columns zero": np.where(columns >= len(columns) - 1024, 0, logits),
        "some columns zero": np.where(chosen, 0, logits),
        "zeros": np.zeros_like(logits),
        "shifted positions": np.roll(logits, 1, 0),
        "shifted vocabulary": np.roll(logits, 1, 1),
        "not a number": np.where(np.arange(len(logits))[:, None] == 3, np.nan, logits),
        "scaled": logits * 1.5,
    }
    assert compare.check(e, logits, form, compare.Tally()) == []
    for name, wrong in broken.items():
        assert compare.check(e, wrong, form, compare.Tally()), name


@each_format
def test_free_running_text_follows_the_reference_until_a_near_tie(
    engine: Engine, expected: list[compare.Expected]
) -> None:
    """Greedy text beside transformers': float32 agrees almost everywhere, the rest for a while."""
    chosen = [e for e in expected if len(e.ids) <= 120][::2]  # written and cut ones
    sampling = Sampling(temperature=0, max_tokens=16)
    results = engine.generate([e.ids for e in chosen], sampling)
    same = 0
    for e, result in zip(chosen, results, strict=True):
        pairs = zip(result.tokens, e.greedy, strict=False)
        same += next((i for i, (a, b) in enumerate(pairs) if a != b), len(result.tokens))
    share = same / sum(len(r.tokens) for r in results)
    assert share > (0.97 if engine.precision is Precision.FLOAT32 else 0.3)
