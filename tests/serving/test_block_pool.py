"""Blocks and their keys: shared prefixes, domains, fences, and what a key costs."""

from __future__ import annotations

import numpy as np
import pytest
from tests.serving.driver import KEY, Driver, small

from bedplate.serving.scheduler import (
    Event,
    siphash128,
)

# Inputs 00, 00 01, ...: the first vectors of the 128-bit variant's reference.
VECTORS = [
    "a3817f04ba25a8e66df67214c7550293",
    "da87c1d86b99af44347659119b22fc45",
    "8177228da4a45dc7fca38bdef60affe4",
    "9c70b60c5267a94e5f33b6b02985ed51",
    "f88164c12d9c8faf7d0f6e7c7bcd5579",
    "1368875980776f8854527a07690e9627",
    "14eeca338b208613485ea0308fd7a15e",
    "a1f1ebbed8dbc153c0b84aa61ff08239",
    "3b62a9ba6258f5610f83e264f31497b4",
]


@pytest.mark.parametrize("length", range(len(VECTORS)))
def test_siphash_gives_the_published_vectors(length: int) -> None:
    """The keyed hash is the published SipHash-2-4-128."""
    assert siphash128(KEY, bytes(range(length))).hex() == VECTORS[length]


def test_a_shared_prefix_is_found_and_never_all_of_the_prompt() -> None:
    """A repeated prompt of 12 tokens finds 2 of its 3 blocks: one token must be computed."""
    driver = Driver(small())
    driver.add(1, list(range(12)), 1)
    driver.drain()
    driver.add(2, list(range(12)), 1)
    assert driver.step() == 4
    assert driver.arrays["row_cached"][0] == 8
    assert driver.scheduler.stats().prefix_hit == 8


def test_domains_do_not_share_prefixes() -> None:
    """The same tokens under another domain are computed again."""
    driver = Driver(small())
    driver.add(1, list(range(12)), 1, domain=(1, 0))
    driver.drain()
    driver.add(2, list(range(12)), 1, domain=(2, 0))
    assert driver.step() == 12
    driver.add(3, list(range(12)), 1, domain=(1, 0))
    assert driver.step() == 4


def test_sharing_can_be_switched_off() -> None:
    """Without prefix sharing no block is ever cached."""
    driver = Driver(small(prefix_sharing=False))
    for request in (1, 2):
        driver.add(request, list(range(12)), 1)
        driver.drain()
    assert driver.scheduler.stats().prefix_hit == 0
    assert driver.scheduler.stats().blocks_cached == 0


def test_blocks_freed_under_a_running_step_are_fenced() -> None:
    """END while the step is in flight keeps its blocks from others until the step is done."""
    driver = Driver(small())
    driver.add(1, [1, 2, 3], 2)
    plan = driver.scheduler.plan(driver.arrays)
    driver.scheduler.apply([Event.end(1)])
    assert driver.scheduler.stats().blocks_fenced == 1
    driver.scheduler.check()
    driver.scheduler.apply([Event.step_done(plan.step, np.zeros(plan.sample_count, np.int32))])
    stats = driver.scheduler.stats()
    assert (stats.blocks_fenced, stats.blocks_clean) == (0, 16)


@pytest.mark.parametrize(("tail", "free"), [(8, 0), (20, 1)])
def test_waiting_requests_that_do_not_fit_cost_a_step_next_to_nothing(tail: int, free: int) -> None:
    """200 of them behind a request that fills the pool but for `free` blocks and has their
    prefix of 50 blocks: a few are looked at, and no key of theirs is computed a second time."""
    prefix = list(range(800))
    driver = Driver(
        small(
            block_count=51 + free,
            block_tokens=16,
            max_requests=201,
            max_running=201,
            max_batched_tokens=64,
            max_model_tokens=832,
        )
    )
    driver.add(0, [*prefix, 1], 15)
    while driver.scheduler.stats().blocks_referenced < 51:
        driver.step()
    for request in range(1, 201):
        driver.add(request, [*prefix, *range(request, request + tail)], 4)
    counts = [driver.scheduler.stats().prefix_hashes]
    for _ in range(5):
        assert driver.step() == 1
        counts.append(driver.scheduler.stats().prefix_hashes)
    first, *later = np.diff(counts)
    assert first <= 4 * 51
    assert max(later) <= 4


@pytest.mark.parametrize("place", range(4))
def test_every_token_of_a_block_is_in_its_key(place: int) -> None:
    """Blocks that differ in one token, in the domain or in what precedes them are all kept."""
    driver = Driver(small())
    prompts = [[1, 2, 3, 4, 9], [1, 2, 3, 4, 9]]
    prompts[1][place] = 7
    prompts.append([5, 5, 5, 5, *prompts[0]])
    for domain in ((0, 0), (1, 0), (0, 1)):
        for prompt in prompts:
            driver.add(len(driver.finished), prompt, 1, domain=domain)
            driver.drain()
    for domain in ((0, 0), (1, 0), (0, 1)):
        for prompt in prompts:
            hits = driver.scheduler.stats().prefix_hit
            driver.add(len(driver.finished), prompt, 1, domain=domain)
            driver.drain()
            assert driver.scheduler.stats().prefix_hit - hits == len(prompt) - 1
