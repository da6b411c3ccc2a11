"""How long a step may take before it is a stall."""

from __future__ import annotations

from bedplate.serving.pace import LEAST_STALL_NS, SLACK, Pace, stall_after_ns

SECOND = 1_000_000_000


def test_before_the_first_step_an_estimate_grows_with_model_and_step() -> None:
    """The default model: 24 s for 512 tokens; a large model gets the minutes it may need."""
    assert round(Pace(135_000_000).allowed_ns(512) / SECOND) == 24
    assert Pace(135_000_000).allowed_ns(1) < 11 * SECOND
    assert Pace(8_000_000_000).allowed_ns(512) == stall_after_ns(8_000_000_000, 512)
    assert stall_after_ns(8_000_000_000, 512) > 300 * SECOND


def test_what_was_measured_decides() -> None:
    """Once a step of 512 tokens took 0.3 s, 12.4 s are allowed for the next, not 24."""
    pace = Pace(135_000_000)
    pace.took(512, 3 * SECOND // 10)
    assert pace.allowed_ns(512) == LEAST_STALL_NS + SLACK * 3 * SECOND // 10
    # The next larger size that ran stands for a smaller one until that ran too.
    assert pace.allowed_ns(1) == pace.allowed_ns(512)
    pace.took(1, SECOND // 100)
    assert pace.allowed_ns(1) == LEAST_STALL_NS + SLACK * SECOND // 100
    assert pace.allowed_ns(512) == LEAST_STALL_NS + SLACK * 3 * SECOND // 10


def test_a_larger_step_is_granted_time_in_proportion() -> None:
    """One token took 20 ms: 300 tokens at least as much for each."""
    pace = Pace(135_000_000)
    pace.took(1, SECOND // 50)
    assert pace.allowed_ns(300) >= LEAST_STALL_NS + SLACK * 300 * SECOND // 50
    assert pace.allowed_ns(300) <= LEAST_STALL_NS + SLACK * 4 * 300 * SECOND // 50


def test_one_long_step_is_forgotten_in_time() -> None:
    """A step of 8 s while the machine was busy: allowed for at once, gone after some hundreds."""
    pace = Pace(135_000_000)
    pace.took(1, 8 * SECOND)
    pace.took(1, SECOND // 100)
    assert pace.allowed_ns(1) > 70 * SECOND
    for _ in range(500):
        pace.took(1, SECOND // 100)
    assert pace.allowed_ns(1) < 11 * SECOND
