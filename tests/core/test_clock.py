import pytest

from bedplate.core.clock import Clock, FakeClock, RealClock


@pytest.mark.parametrize("clock", [RealClock(), FakeClock()])
def test_monotonic_time_never_falls(clock: Clock) -> None:
    """Both clocks keep the one promise that deadlines rest on."""
    readings = [clock.monotonic_ns() for _ in range(100)]
    assert readings == sorted(readings)


def test_a_fake_clock_moves_only_when_told() -> None:
    """Advancing moves both times, stepping only the wall clock."""
    clock = FakeClock(monotonic_ns=5, wall_ns=100)
    clock.advance(10)
    clock.step_wall(-50)
    assert (clock.monotonic_ns(), clock.wall_ns()) == (15, 60)
    with pytest.raises(ValueError, match="cannot advance"):
        clock.advance(-1)
