import pytest

from bedplate.core.clock import FakeClock
from bedplate.core.health import HealthState, Progress


@pytest.fixture
def clock() -> FakeClock:
    """Time under the test's control."""
    return FakeClock()


@pytest.fixture
def progress(clock: FakeClock) -> Progress:
    """A ready service that may wait 10 ns between steps."""
    made = Progress(10, clock)
    made.enter(HealthState.READY)
    return made


def test_work_without_a_step_is_a_stall(progress: Progress, clock: FakeClock) -> None:
    """A frozen engine with requests running is unhealthy although it answers."""
    progress.arrived(3)
    clock.advance(11)
    health = progress.health()
    assert health.state is HealthState.STALLED
    assert "3 pending" in health.reason
    assert not health.state.healthy


def test_idle_is_healthy_for_ever(progress: Progress, clock: FakeClock) -> None:
    """Nothing to do is not a stall, also after there was something."""
    progress.arrived(1)
    progress.step(0)
    clock.advance(10**18)
    assert progress.health().state is HealthState.READY


def test_saturated_is_healthy_while_it_steps(progress: Progress, clock: FakeClock) -> None:
    """A full queue that advances is only busy."""
    progress.arrived(1000)
    for _ in range(50):
        clock.advance(9)
        progress.step(1000)
    assert progress.health().state.healthy
    assert progress.health().last_progress_ns == clock.monotonic_ns()


def test_arrivals_do_not_hide_a_stall(progress: Progress, clock: FakeClock) -> None:
    """New requests must not reset the stall clock of a frozen engine."""
    progress.arrived(1)
    for pending in range(2, 6):
        clock.advance(3)
        progress.arrived(pending)
    assert progress.health().state is HealthState.STALLED


def test_work_after_idleness_starts_its_own_time(progress: Progress, clock: FakeClock) -> None:
    """The long quiet time before a request does not count against it."""
    progress.step(0)
    clock.advance(10**9)
    progress.arrived(1)
    assert progress.health().state is HealthState.READY


def test_starting_is_not_stalled(clock: FakeClock) -> None:
    """Loading a model takes as long as it takes."""
    progress = Progress(10, clock)
    progress.arrived(1)
    clock.advance(100)
    assert progress.health().state is HealthState.STARTING
    assert progress.health().last_progress_ns is None
