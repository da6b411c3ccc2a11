"""Who gets the places of the queue."""

from __future__ import annotations

import pytest

from bedplate.serving.errors import RequestRefused
from bedplate.serving.queue_share import QueueShare


def fill(share: QueueShare, caller: str | None) -> int:
    """Take until refused; how many places that were."""
    for count in range(share.places + 1):
        try:
            share.take(caller)
        except RequestRefused:
            return count
    raise AssertionError("nobody was refused")


def test_one_caller_gets_three_quarters_and_a_second_finds_places() -> None:
    """Of 100: 75, then three quarters of the 25 that are left."""
    share = QueueShare(100)
    assert [fill(share, caller) for caller in ("a", "b", "c")] == [75, 19, 5]


def test_callers_that_come_together_get_equal_parts() -> None:
    """Three at once: 30 places each, and a tenth is free for whom nobody knows yet."""
    share = QueueShare(100)
    refused: set[str] = set()
    while len(refused) < 3:
        for caller in ("a", "b", "c"):
            try:
                share.take(caller)
            except RequestRefused:
                refused.add(caller)
    assert {share._held[caller] for caller in ("a", "b", "c")} == {30}
    share.take("d")


def test_this_process_itself_has_all_of_it() -> None:
    """Without a caller only a full queue refuses, with 429 and when to come again."""
    share = QueueShare(10)
    assert fill(share, None) == 10
    with pytest.raises(RequestRefused, match="full with 10") as info:
        share.take("a")
    assert info.value.status == 429


def test_places_come_back() -> None:
    """What ended frees its caller's place; `clear` frees all."""
    share = QueueShare(8)
    count = fill(share, "a")
    for _ in range(count):
        share.give_back("a")
    assert (share.taken, share._held) == (0, {})
    assert fill(share, "a") == count
    share.clear()
    assert fill(share, "b") == count
    share.clear()
    assert fill(share, None) == share.places
