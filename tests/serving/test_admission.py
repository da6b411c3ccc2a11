"""What can never run is refused with the field at fault; the rest knows its room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bedplate.serving.admission import room_for
from bedplate.serving.errors import RequestRefused
from bedplate.serving.request import Request
from bedplate.serving.sampling import Sampling
from bedplate.serving.scheduler import Limits

LIMITS = Limits(block_count=100, block_tokens=16, max_model_tokens=128)
SIZE = 260


@pytest.mark.parametrize(
    ("prompt", "match"),
    [
        ([], "the prompt is empty"),
        ([1] * 128, "128 tokens, this model's context holds 128 with the answer"),
        ([5, SIZE, 5], f"token id {SIZE} is outside the vocabulary of {SIZE}"),
        ([5, -1], "token id -1 is outside"),
    ],
)
def test_a_prompt_that_cannot_run_is_refused(prompt: Sequence[int], match: str) -> None:
    """Empty, without room for one token, or with ids that are none."""
    with pytest.raises(RequestRefused, match=match) as info:
        room_for(Request(prompt), LIMITS, SIZE)
    assert (info.value.status, info.value.param) == (400, "prompt")


def test_a_prompt_beyond_the_context_has_a_code_of_its_own() -> None:
    """Clients shorten their history by it."""
    with pytest.raises(RequestRefused) as info:
        room_for(Request([1] * 200), LIMITS, SIZE)
    assert info.value.condition == "context_length_exceeded"


def test_a_stop_id_outside_the_vocabulary_is_refused() -> None:
    """It could never end anything."""
    request = Request([5], Sampling(stop_token_ids=(3, SIZE)))
    with pytest.raises(RequestRefused, match=f"stop_token_ids holds {SIZE}") as info:
        room_for(request, LIMITS, SIZE)
    assert (info.value.status, info.value.param) == (400, "stop_token_ids")
    assert room_for(replace(request, sampling=Sampling(stop_token_ids=(SIZE - 1,))), LIMITS, SIZE)


@pytest.mark.parametrize(
    ("length", "wanted", "room"), [(127, None, 1), (100, None, 28), (100, 3, 3), (100, 99, 28)]
)
def test_the_answer_has_what_the_prompt_leaves(length: int, wanted: int | None, room: int) -> None:
    """Or what was asked for, if that is less; the vocabulary's last id is one."""
    request = Request([SIZE - 1] * length, Sampling(max_tokens=wanted))
    assert room_for(request, LIMITS, SIZE) == room


def test_a_pool_below_the_context_bounds_the_longest_request() -> None:
    """One request alone has all blocks, and no more."""
    small = replace(LIMITS, block_count=3)
    assert room_for(Request([1] * 40), small, SIZE) == 8
    with pytest.raises(RequestRefused, match="holds 48 with"):
        room_for(Request([1] * 48), small, SIZE)
