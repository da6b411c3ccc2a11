"""The scheduler and the block pool, against a plain model of what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.serving.driver import KEY, Driver, small

from bedplate.serving.errors import SchedulerError
from bedplate.serving.scheduler import (
    STATUS_QUEUE_FULL,
    STATUS_TOO_LONG,
    Event,
    Limits,
    Scheduler,
)


def test_one_request_is_read_then_decoded_token_by_token() -> None:
    """A prompt of 6 and 3 new tokens: one step of 6, then two of 1."""
    driver = Driver(small())
    driver.add(1, [1, 2, 3, 4, 5, 6], 3)
    assert [driver.step() for _ in range(3)] == [6, 1, 1]
    assert driver.finished == [1]
    stats = driver.scheduler.stats()
    assert stats.blocks_referenced == 0
    assert stats.blocks_clean + stats.blocks_cached == 16


def test_a_long_prompt_is_read_in_chunks_within_the_budget() -> None:
    """40 tokens with a budget of 16 take 16, 16 and 8."""
    driver = Driver(small())
    driver.add(1, list(range(40)), 1)
    assert [driver.step() for _ in range(3)] == [16, 16, 8]


def test_decoding_goes_on_while_a_long_prompt_is_read() -> None:
    """Each step of the long prompt also holds the running request's token."""
    driver = Driver(small())
    driver.add(1, [1, 2, 3], 20)
    driver.step()
    driver.add(2, list(range(40)), 1)
    for _ in range(2):
        before = len(driver.live[1]["tokens"])  # type: ignore[arg-type]
        assert driver.step() == 16
        assert len(driver.live[1]["tokens"]) == before + 1  # type: ignore[arg-type]


def test_a_short_prompt_does_not_wait_for_a_long_one() -> None:
    """The budget is shared: the short request samples in the first step."""
    driver = Driver(small())
    driver.add(1, list(range(40)), 1)
    driver.add(2, [1, 2, 3], 1)
    driver.step()
    assert driver.finished == [2]


def test_prompts_share_evenly_what_decoding_leaves() -> None:
    """Two decodes take a token each; two long prompts get half of the other 14, not a quarter."""
    driver = Driver(small(block_count=64))
    for request in (1, 2):
        driver.add(request, [request, 1], 20)
    driver.step()
    for request in (3, 4):
        driver.add(request, [request] * 30, 1)
    plan = driver.scheduler.plan(driver.arrays)
    assert sorted(driver.arrays["row_tokens"][: plan.row_count].tolist()) == [1, 1, 7, 7]
    driver.scheduler.apply([Event.step_lost(plan.step)])
    driver.drain()


def test_a_pool_beyond_what_slots_can_number_is_refused() -> None:
    """A slot is an int32: blocks times tokens count, not either alone."""
    with pytest.raises(SchedulerError, match="gives 4294967296 token slots"):
        Scheduler(Limits(block_count=1 << 26, block_tokens=64))


def test_two_long_requests_that_do_not_fit_together_both_finish() -> None:
    """Each needs 40 of the pool's 64 tokens: the later one gives way, and not for ever."""
    driver = Driver(small(prefix_sharing=False))
    driver.add(1, list(range(30)), 14)
    driver.add(2, list(range(31)), 14)
    driver.drain()
    assert sorted(driver.finished) == [1, 2]
    assert driver.preemptions.get(1, 0) == 0
    assert driver.preemptions.get(2, 0) <= 2


def test_a_request_that_can_never_fit_is_refused_at_once() -> None:
    """Longer than the model or the pool: TOO_LONG, and nothing is queued."""
    driver = Driver(small(block_count=4))
    with pytest.raises(SchedulerError, match="needs 49 tokens") as info:
        driver.scheduler.apply([Event.add(1, list(range(40)), 9)])
    assert info.value.status == STATUS_TOO_LONG
    with pytest.raises(SchedulerError, match="the pool 16"):
        driver.scheduler.apply([Event.add(1, list(range(10)), 9)])
    assert driver.scheduler.stats().waiting == 0


def test_a_full_queue_refuses_and_keeps_the_rest() -> None:
    """The request beyond max_requests is refused by status."""
    driver = Driver(small(max_requests=8))
    for request in range(8):
        driver.add(request, [1, 2], 1)
    with pytest.raises(SchedulerError) as info:
        driver.scheduler.apply([Event.add(99, [1, 2], 1)])
    assert info.value.status == STATUS_QUEUE_FULL
    driver.drain()


def test_priority_goes_before_arrival() -> None:
    """With room for one running request, the urgent one is admitted first."""
    driver = Driver(small(max_running=1))
    driver.add(1, [1, 2], 1, priority=5)
    driver.add(2, [1, 2], 1, priority=0)
    driver.drain()
    assert driver.finished == [2, 1]


def test_scoring_samples_every_prompt_row_within_the_row_limit() -> None:
    """A score request of 40 tokens with 16 logits rows takes three steps of all rows."""
    driver = Driver(small())
    driver.scheduler.apply([Event.add(1, list(range(40)), 1, score=True)])
    rows = []
    for _ in range(3):
        plan = driver.scheduler.plan(driver.arrays)
        assert plan.sample_count == plan.token_count
        rows += list(driver.arrays["positions"][: plan.token_count])
        driver.scheduler.apply([Event.step_done(plan.step, np.zeros(plan.sample_count, np.int32))])
    assert rows == list(range(40))


def test_no_step_samples_more_rows_than_there_are() -> None:
    """More requests than rows take turns: a prompt ends, and a decode goes on, when one is free."""
    driver = Driver(small(block_count=64, max_running=8, max_sample_rows=3))
    for request in range(8):
        driver.add(request, [request, 1], 4)
    driver.drain()
    assert sorted(driver.finished) == list(range(8))


def test_a_lost_step_is_planned_again() -> None:
    """After STEP_LOST the same rows come back and nothing counts as computed."""
    driver = Driver(small())
    driver.add(1, [1, 2, 3], 2)
    plan = driver.scheduler.plan(driver.arrays)
    with pytest.raises(SchedulerError, match="in flight"):
        driver.scheduler.plan(driver.arrays)
    driver.scheduler.apply([Event.step_lost(plan.step)])
    assert driver.step() == 3


def test_a_token_of_minus_one_ends_the_row_alone() -> None:
    """A row without a token (NaN logits) is never planned again; its neighbour goes on."""
    driver = Driver(small())
    driver.add(1, [1, 2, 3], 4)
    driver.add(2, [4, 5, 6], 4)
    plan = driver.scheduler.plan(driver.arrays)
    driver.scheduler.apply([Event.step_done(plan.step, np.array([-1, 7], np.int32))])
    plan = driver.scheduler.plan(driver.arrays)
    assert list(driver.arrays["row_request"][: plan.row_count]) == [2]


def test_identical_events_give_identical_plans() -> None:
    """Two states fed the same events plan the same, arrays and all."""
    one, two = Driver(small()), Driver(small())
    for driver in (one, two):
        driver.add(1, list(range(20)), 6)
        driver.add(2, list(range(9)), 6)
    for _ in range(6):
        assert one.step() == two.step()
        for name, array in one.arrays.arrays.items():
            np.testing.assert_array_equal(array, two.arrays[name])


@settings(deadline=None)
@given(
    data=st.data(),
    blocks=st.integers(4, 20),
    block_tokens=st.sampled_from([1, 2, 4, 8]),
    budget=st.integers(1, 24),
    running=st.integers(1, 6),
    sharing=st.booleans(),
)
def test_random_histories_lose_nothing(
    data: st.DataObject,
    blocks: int,
    block_tokens: int,
    budget: int,
    running: int,
    sharing: bool,
) -> None:
    """Any mix of arrivals, aborts and steps: every read sees its own prefix, all finish,
    no block leaks, every invariant holds after every call."""
    limits = small(
        block_count=blocks,
        block_tokens=block_tokens,
        max_batched_tokens=budget,
        max_running=running,
        max_sample_rows=min(budget, running),
        prefix_sharing=sharing,
    )
    driver = Driver(limits)
    longest = min(48, blocks * block_tokens)
    for request in range(data.draw(st.integers(1, 14))):
        length = data.draw(st.integers(1, max(1, longest - 1)))
        new = data.draw(st.integers(1, max(1, longest - length)))
        if length + new <= longest:
            stem = data.draw(st.integers(0, 1))
            driver.add(
                request,
                [(i * (stem + 1)) % 7 for i in range(length)],
                new,
                priority=data.draw(st.integers(0, 2)),
            )
        for _ in range(data.draw(st.integers(0, 3))):
            driver.step()
        if driver.live and data.draw(st.integers(0, 9)) == 0:
            driver.end(data.draw(st.sampled_from(sorted(driver.live))))
    driver.drain()
    stats = driver.scheduler.stats()
    assert stats.blocks_referenced == stats.blocks_fenced == stats.waiting == stats.running == 0
    assert stats.blocks_clean + stats.blocks_cached == blocks


def test_small_requests_overtake_a_large_one_sixteen_times_and_no_more() -> None:
    """One comes in each step and would fit: sixteen get in before the large one, then none."""
    driver = Driver(small(block_count=12, prefix_sharing=False))
    driver.add(0, list(range(20)), 26)
    driver.step()
    driver.step()
    driver.add(1, list(range(40)), 4)
    for request in range(2, 24):
        driver.add(request, [1, 2], 1)
        driver.step()
    assert driver.finished == list(range(2, 18))
    driver.drain()
    assert 1 in driver.finished


def test_ids_that_collide_in_the_table_are_found_after_others_left() -> None:
    """Four of eight places taken, in any order of coming and going: nobody is lost."""
    rng = np.random.default_rng(5)
    scheduler = Scheduler(small(max_requests=4, max_running=4), hash_key=KEY)
    live: list[int] = []
    for _ in range(2000):
        if len(live) < 4 and rng.random() < 0.6:
            live.append(int(rng.integers(1, 2**62)))
            scheduler.apply([Event.add(live[-1], [1, 2], 1)])
        elif live:
            scheduler.apply([Event.end(live.pop(int(rng.integers(len(live)))))])
        scheduler.check()
    assert scheduler.stats().waiting == len(live)
