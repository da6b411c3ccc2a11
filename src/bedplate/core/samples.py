"""One way to summarise a measurement: order statistics, no normality.

Timings are skewed and shared machines are noisy, so nothing here uses a mean
or a standard deviation. A median comes with a distribution-free interval (the
order statistics that bracket it with the asked confidence), and a comparison
with a peer is made of rounds that run both, in random order, so that drift of
the machine hits both alike; the ratio is the median of the rounds' ratios.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bedplate.core.clock import Clock, RealClock
from bedplate.core.errors import UsageError
from bedplate.core.seeds import streams

CONFIDENCE = 0.95
Better = Literal["higher", "lower"]


@dataclass(frozen=True, slots=True)
class Summary:
    """Order statistics of one sample, in the unit of its values.

    `interval` brackets the true median with the asked confidence; None when
    the sample is too small for it (below six values at 95 %).
    """

    count: int
    p5: float
    p50: float
    p95: float
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Ratio:
    """Ours against a peer: above 1 is a win, whichever direction is better."""

    ratio: float
    interval: tuple[float, float] | None
    ours: Summary
    peer: Summary
    rounds: int


def quantile(values: Sequence[float], share: float) -> float:
    """The quantile at `share` in [0, 1], linear between order statistics.

    Source: Hyndman and Fan 1996, definition 7. Raises `UsageError` for an
    empty sample, a share out of range, or a value that is not finite.
    """
    ordered = _ordered(values)
    if not 0.0 <= share <= 1.0:
        raise UsageError(f"{share} is not a share between 0 and 1", code="core.sample")
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    if position == low:
        return ordered[low]
    weight = position - low
    return ordered[low] * (1.0 - weight) + ordered[low + 1] * weight


def summarise(values: Sequence[float], confidence: float = CONFIDENCE) -> Summary:
    """Order statistics and the median's interval of one sample."""
    ordered = _ordered(values)
    return Summary(
        len(ordered),
        quantile(ordered, 0.05),
        quantile(ordered, 0.50),
        quantile(ordered, 0.95),
        median_interval(ordered, confidence),
    )


def median_interval(
    values: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[float, float] | None:
    """The narrowest symmetric pair of order statistics that covers the median.

    With k-1 of n values below it, the pair (k, n+1-k) misses the median with
    probability 2 P(B <= k-1), B binomial(n, 1/2), whatever the distribution.
    None when even the extremes do not reach the confidence.

    Source: David and Nagaraja, Order Statistics, section 7.1.
    """
    ordered = _ordered(values)
    rank = _interval_rank(len(ordered), confidence)
    return None if rank == 0 else (ordered[rank - 1], ordered[-rank])


def compare(ours: Sequence[float], peer: Sequence[float], better: Better) -> Ratio:
    """Ours against the peer from paired rounds.

    `ours[i]` and `peer[i]` were measured in the same round. Raises
    `UsageError` for unequal lengths or a value that is not above zero.
    """
    if len(ours) != len(peer):
        raise UsageError(f"{len(ours)} rounds of ours, {len(peer)} of the peer", code="core.sample")
    if min(*ours, *peer) <= 0:
        raise UsageError("a ratio needs values above zero", code="core.sample")
    pairs = zip(ours, peer, strict=True)
    ratios = [theirs / own if better == "lower" else own / theirs for own, theirs in pairs]
    whole = summarise(ratios)
    return Ratio(whole.p50, whole.interval, summarise(ours), summarise(peer), len(ratios))


def interleave(
    ours: Callable[[], float],
    peer: Callable[[], float],
    *,
    rounds: int,
    better: Better,
    seed: int,
    warm_up: int = 1,
) -> Ratio:
    """Run both `rounds` times, each round in random order, and compare.

    Each call returns its own measurement (see `timed` for elapsed time).
    `warm_up` rounds are run first and forgotten.
    """
    (order,) = streams(seed, 1)
    own: list[float] = []
    theirs: list[float] = []
    for number in range(warm_up + rounds):
        if order.integers(2):
            value_peer, value_ours = peer(), ours()
        else:
            value_ours, value_peer = ours(), peer()
        if number >= warm_up:
            own.append(value_ours)
            theirs.append(value_peer)
    return compare(own, theirs, better)


def timed(work: Callable[[], object], clock: Clock | None = None) -> Callable[[], float]:
    """`work` as a measurement: its elapsed nanoseconds."""
    source = clock or RealClock()

    def measure() -> float:
        start_ns = source.monotonic_ns()
        work()
        return float(source.monotonic_ns() - start_ns)

    return measure


def _ordered(values: Sequence[float]) -> list[float]:
    if len(values) == 0:
        raise UsageError("a sample without values has no statistics", code="core.sample")
    ordered = sorted(float(value) for value in values)
    if not (math.isfinite(ordered[0]) and math.isfinite(ordered[-1])) or any(
        math.isnan(value) for value in ordered
    ):
        raise UsageError("a sample holds a value that is not finite", code="core.sample")
    return ordered


def _interval_rank(count: int, confidence: float) -> int:
    """The largest k whose pair of order statistics still covers; 0 if none."""
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"{confidence} is not a confidence between 0 and 1", code="core.sample")
    # Logarithms, because 2**-count underflows from 1,075 values on.
    below = np.arange(0, (count + 1) // 2)
    log_gamma = np.array([math.lgamma(k + 1) + math.lgamma(count - k + 1) for k in below])
    mass = np.exp(math.lgamma(count + 1) - log_gamma - count * math.log(2.0))
    # A tie with the confidence counts as covered despite rounding.
    covered = 2.0 * np.cumsum(mass) <= (1.0 - confidence) * (1.0 + 1e-12)
    return int(np.count_nonzero(covered))
