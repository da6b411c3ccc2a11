"""One request, token by token."""

from __future__ import annotations

import pytest
from tests.serving.files import vocabulary, write_gguf

from bedplate.serving.gguf_model import GgufModel
from bedplate.serving.request import FinishReason, Live, Request
from bedplate.serving.sampling import Sampling
from bedplate.serving.tokenizer import Tokenizer

SIZE = len(vocabulary())


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """The tiny model's."""
    return GgufModel(write_gguf(tmp_path_factory.mktemp("t") / "tiny.gguf")).tokenizer()


@pytest.mark.parametrize(
    ("token", "reason"),
    [(SIZE - 1, FinishReason.LENGTH), (SIZE, FinishReason.ERROR), (-1, FinishReason.ERROR)],
)
def test_an_id_that_is_none_ends_the_request_and_is_no_token(
    tokenizer: Tokenizer, token: int, reason: FinishReason
) -> None:
    """-1 stands for NaN among the logits; the vocabulary's last id is the last good one."""
    live = Live(0, Request([5], Sampling(max_tokens=1)), lambda _: None, tokenizer, 1, 0)
    output = live.push(token)
    assert output.finish_reason is reason
    good = reason is FinishReason.LENGTH
    assert (output.tokens, live.generated) == (((token,), 1) if good else ((), 0))
    assert bool(output.error) is not good
