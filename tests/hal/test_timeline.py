"""Timelines from the host."""

from __future__ import annotations

import threading

import pytest

from bedplate.hal.api import DeadlineExceeded, Device, HalError, InvalidArgument


def test_values_only_grow(device: Device) -> None:
    """Signalling the same or a smaller value is refused and changes nothing."""
    timeline = device.timeline(10)
    timeline.signal(12)
    for value in (12, 11, 0):
        with pytest.raises(InvalidArgument, match="must grow"):
            timeline.signal(value)
    assert timeline.value == 12


def test_all_64_bits_count(device: Device) -> None:
    """The largest value is reached like any other."""
    timeline = device.timeline((1 << 64) - 2)
    timeline.signal((1 << 64) - 1)
    timeline.wait((1 << 64) - 1, 0)


def test_a_wait_for_the_past_returns_at_once(device: Device) -> None:
    """A timeout of 0 polls."""
    timeline = device.timeline(3)
    timeline.wait(3, 0)
    with pytest.raises(DeadlineExceeded, match="is at 3 and did not reach 4"):
        timeline.wait(4, 0)


def test_a_waiter_wakes(device: Device) -> None:
    """From another thread, past the value."""
    timeline, woken = device.timeline(), threading.Event()

    def wait() -> None:
        timeline.wait(5)
        woken.set()

    thread = threading.Thread(target=wait)
    thread.start()
    timeline.signal(4)
    assert not woken.wait(0.05)
    timeline.signal(6)
    assert woken.wait(10)
    thread.join()


def test_destroy_wakes_its_waiters(device: Device) -> None:
    """They get an error, not the value, and the handle is stale."""
    timeline, errors = device.timeline(), []
    handle, started = timeline.handle, threading.Event()

    def wait() -> None:
        started.set()
        try:
            timeline.wait(1)
        except HalError as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    started.wait()
    timeline.destroy()
    thread.join(10)
    assert len(errors) == 1
    assert device.api.timeline.signal(device.handle, handle, 5) < 0


def test_timeouts_are_checked(device: Device) -> None:
    """A negative one is an error, not for ever."""
    with pytest.raises(InvalidArgument, match="timeout"):
        device.timeline().wait(1, -1)
