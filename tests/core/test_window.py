import os

from bedplate.core import window
from bedplate.core.window import LoadSampler, judge, sample


def raw(
    elapsed_ns: int = 100, calibration_ns: int = 50, switches: int = 0, steal_ticks: int = 0
) -> window._Window:
    """One window as the sampler records it."""
    return window._Window(elapsed_ns, calibration_ns, switches, steal_ticks)


def test_every_drop_has_exactly_one_reason() -> None:
    """Kept and dropped windows add up, and disturbed values never count."""
    disturbed = [raw(9999, switches=1, steal_ticks=1), raw(9999, steal_ticks=2), raw(9999, 90)]
    report = judge([raw()] * 40 + disturbed, operations=10, minimum_kept=30)
    assert report.dropped == {"context_switch": 1, "steal": 1, "clock_dip": 1}
    assert report.summary is not None
    assert (report.summary.count, report.summary.p95) == (40, 10.0)
    assert report.reason is None


def test_too_few_undisturbed_windows_give_no_number() -> None:
    """29 windows are a reason, not a measurement."""
    report = judge([raw()] * 29 + [raw(switches=1)] * 71, operations=1, minimum_kept=30)
    assert report.summary is None
    assert report.reason == "29 undisturbed windows of 100, 30 needed"


def test_no_windows_at_all_are_a_reason_too() -> None:
    """An empty run neither crashes nor passes."""
    assert judge([], operations=1, minimum_kept=0).summary is None


def test_sampling_counts_every_window_and_restores_the_affinity() -> None:
    """Whatever the machine does meanwhile, nothing is lost or left pinned."""
    before = os.sched_getaffinity(0)
    calls: list[int] = []
    report = sample(lambda: calls.append(1), operations=1, windows=50)
    assert len(calls) == 50
    assert len(report.values_ns) + sum(report.dropped.values()) == 50
    assert os.sched_getaffinity(0) == before


def test_load_shares_stay_within_the_machine() -> None:
    """A share of the machine is between nothing and all of it."""
    sampler = LoadSampler()
    sum(range(200_000))
    load = sampler.read()
    assert 0 <= load.steal_milli <= load.busy_milli <= 1000
    assert load.load_average >= 0.0
