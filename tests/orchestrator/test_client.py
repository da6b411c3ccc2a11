from __future__ import annotations

import pytest
from tests.orchestrator.conftest import MESSAGES

from bedplate.core.errors import EXIT_FAILED, EXIT_USAGE
from bedplate.orchestrator.api import GatewayError, Platform, Reply, ask
from bedplate.orchestrator.errors import QuestionRefused


def test_an_answer_is_handed_out_and_measured(plate: Platform) -> None:
    """Text as it comes, token counts, and times in order."""
    pieces: list[str] = []
    reply = ask(
        plate.url,
        plate.internal_key,
        "tiny",
        MESSAGES,
        on_text=pieces.append,
        max_tokens=6,
        ignore_eos=True,
    )
    assert "".join(pieces) == reply.text
    assert len(pieces) > 1
    assert reply.completion_tokens == 6
    assert reply.prompt_tokens > 0
    assert 0 < reply.time_to_first_token_ns < reply.elapsed_ns


def test_the_rate_is_of_the_tokens_after_the_first() -> None:
    """Five tokens in the second after the first; one token has no rate."""
    assert Reply("", 1, 6, 500_000_000, 1_500_000_000).tokens_per_second == 5.0
    assert Reply("", 1, 1, 500_000_000, 500_000_000).tokens_per_second == 0.0


def test_a_refusal_is_the_servers_sentence(plate: Platform) -> None:
    """Another model, a wrong key."""
    with pytest.raises(GatewayError, match="'gpt' is not served here"):
        ask(plate.url, plate.internal_key, "gpt", MESSAGES)
    with pytest.raises(GatewayError, match="key is not known"):
        ask(plate.url, "wrong", "tiny", MESSAGES)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"temperature": 1000}, "temperature"),
        ({"stop": ["x"] * 99}, "stop"),
        ({"no_such_field": 1}, "no_such_field"),
    ],
)
def test_a_wrong_value_is_the_callers_fault(
    plate: Platform, parameters: dict[str, object], match: str
) -> None:
    """Exit code 2, unlike a key or a model that is not there."""
    with pytest.raises(QuestionRefused, match=match) as told:
        ask(plate.url, plate.internal_key, "tiny", MESSAGES, **parameters)
    assert told.value.exit_code == EXIT_USAGE
    with pytest.raises(GatewayError) as other:
        ask(plate.url, "wrong", "tiny", MESSAGES)
    assert other.value.exit_code == EXIT_FAILED


def test_no_gateway_is_said_with_where_to_look() -> None:
    """A closed port."""
    with pytest.raises(GatewayError, match=r"no answer from .*; see `bedplate status`"):
        ask("http://127.0.0.1:9", "key", "tiny", MESSAGES)
