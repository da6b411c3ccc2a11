import statistics
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.core import samples
from bedplate.core.clock import FakeClock
from bedplate.core.errors import UsageError

VALUES = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=60)


@given(VALUES, st.floats(0, 1))
def test_a_quantile_is_numpys(values: list[float], share: float) -> None:
    """Definition 7, within rounding of the interpolation."""
    expected = float(np.quantile(values, share))
    assert samples.quantile(values, share) == pytest.approx(expected, rel=1e-9, abs=1e-6)


@given(VALUES)
def test_a_median_is_the_standard_librarys(values: list[float]) -> None:
    """The oracle is the statistics module."""
    assert samples.quantile(values, 0.5) == pytest.approx(statistics.median(values))


def exact_rank(count: int, confidence: Fraction) -> int:
    """The largest k with 2 P(B <= k-1) <= 1 - confidence, in integers."""
    rank, below = 0, 0
    while True:
        below += comb(count, rank)
        if 2 * below > (1 - confidence) * 2**count:
            return rank
        rank += 1


@pytest.mark.parametrize("count", [1, 2, 5, 6, 7, 8, 9, 20, 30, 99, 100, 101, 1500])
def test_the_median_interval_is_exactly_the_binomial_one(count: int) -> None:
    """Ranks agree with exact integer arithmetic, also where 2**-n underflows."""
    rank = exact_rank(count, Fraction(95, 100))
    interval = samples.median_interval(list(range(count)))
    assert interval == (None if rank == 0 else (rank - 1, count - rank))


def test_the_interval_covers_as_often_as_it_says() -> None:
    """On a skewed distribution with a known median, seeded."""
    random = np.random.default_rng(5)
    draws = random.lognormal(0.0, 1.0, size=(2000, 25))
    intervals = [samples.median_interval(list(row)) for row in draws]
    covered = sum(low <= 1.0 <= high for low, high in filter(None, intervals))
    # Expected 95.7 %; four standard deviations of 2,000 draws are 1.8 %.
    assert 0.939 <= covered / 2000 <= 0.975


def test_too_few_values_give_no_interval() -> None:
    """Five values cannot bracket a median with 95 %; six can."""
    assert samples.summarise([1, 2, 3, 4, 5]).interval is None
    assert samples.summarise([1, 2, 3, 4, 5, 6]).interval == (1, 6)


@pytest.mark.parametrize("values", [[], [1.0, float("nan")], [float("inf")]])
def test_what_is_not_a_sample_is_refused(values: list[float]) -> None:
    """An empty or poisoned sample never becomes a number."""
    with pytest.raises(UsageError):
        samples.summarise(values)


@pytest.mark.parametrize(("better", "ratio"), [("lower", 2.0), ("higher", 0.5)])
def test_a_ratio_above_one_is_a_win(better: samples.Better, ratio: float) -> None:
    """Half the peer's time is 2, half the peer's rate is 0.5."""
    found = samples.compare([1.0] * 8, [2.0] * 8, better)
    assert (found.ratio, found.interval) == (ratio, (ratio, ratio))


def test_drift_hits_both_sides_alike() -> None:
    """A machine that slows down tenfold does not move a paired ratio."""
    drift = [1.0 + 0.1 * step for step in range(90)]
    found = samples.compare([2 * d for d in drift], [3 * d for d in drift], "lower")
    assert found.ratio == pytest.approx(1.5)
    assert found.interval == pytest.approx((1.5, 1.5))


@pytest.mark.parametrize(("ours", "peer"), [([1.0], [1.0, 2.0]), ([0.0], [1.0]), ([1.0], [-1.0])])
def test_a_ratio_of_nothing_is_refused(ours: list[float], peer: list[float]) -> None:
    """Unpaired rounds and non-positive values have no ratio."""
    with pytest.raises(UsageError):
        samples.compare(ours, peer, "lower")


def test_interleaving_runs_both_in_every_round_in_mixed_order() -> None:
    """Neither side always has the warm cache that the other left."""
    calls: list[str] = []

    def run(name: str, value: float) -> float:
        calls.append(name)
        return value

    found = samples.interleave(
        lambda: run("o", 1.0), lambda: run("p", 4.0), rounds=40, better="lower", seed=3, warm_up=2
    )
    rounds = ["".join(calls[n : n + 2]) for n in range(0, len(calls), 2)]
    assert found.ratio == 4.0
    assert found.rounds == 40
    assert len(rounds) == 42
    assert set(rounds) == {"op", "po"}


def test_timed_measures_on_the_clock_it_is_given() -> None:
    """Elapsed nanoseconds of the work alone."""
    clock = FakeClock()
    assert samples.timed(lambda: clock.advance(42), clock)() == 42.0
