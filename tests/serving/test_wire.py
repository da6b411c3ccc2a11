"""The wire format: every field is applied, refused by name, or ignored on purpose."""

from __future__ import annotations

import json
from typing import Any, get_args, get_type_hints

import msgspec
import openai.types.chat.completion_create_params as chat_params
import openai.types.completion_create_params as text_params
import pytest

from bedplate.serving import wire
from bedplate.serving.errors import RequestRefused

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
TEXT = {"model": "m", "prompt": "hi"}


def chat(**changes: Any) -> wire.ChatBody:
    """A decoded chat body."""
    return wire.decode(json.dumps({**CHAT, **changes}).encode(), wire.ChatBody)


def text(**changes: Any) -> wire.CompletionBody:
    """A decoded completion body."""
    return wire.decode(json.dumps({**TEXT, **changes}).encode(), wire.CompletionBody)


def test_every_field_of_the_client_is_known() -> None:
    """The openai client's own list of parameters: none is unknown to us."""
    for params, body in ((chat_params, wire.ChatBody), (text_params, wire.CompletionBody)):
        base = params.CompletionCreateParamsBase
        theirs = set(get_type_hints(base)) | {"stream"}
        ours = {field.name for field in msgspec.structs.fields(body)}
        assert theirs - ours == set()


def test_ignored_fields_are_documented_and_exist() -> None:
    """`IGNORED` names fields that are really there, each with its reason."""
    ours = {f.name for f in msgspec.structs.fields(wire.ChatBody)}
    assert set(wire.IGNORED) <= ours
    assert all(wire.IGNORED.values())


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"temperature": "hot"}, "temperature"),
        ({"temperatur": 1}, "temperatur"),
        ({"n": 0}, "n"),
        ({"n": 1000000}, "n"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
         "messages[0].content[0]"),
        ({"messages": [{"content": "x"}]}, "role"),
        ({"stream_options": {}}, "stream_options"),
        ({"stream": True, "stream_options": {"usage": True}}, "usage"),
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"logprobs": True}, "logprobs"),
        ({"logit_bias": {"1": 5}}, "logit_bias"),
        ({"frequency_penalty": 0.5}, "frequency_penalty"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": 2.01}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"top_k": -2}, "top_k"),
        ({"min_p": 1.5}, "min_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"priority": -1}, "priority"),
        ({"priority": 2**31}, "priority"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "1"}]}]},
         "messages[0].tool_calls"),
        ({"messages": [{"role": "user", "content": "x", "weight": 1}]}, "weight"),
        ({"stop": [""]}, "stop"),
        ({"stop": ["x"] * 17}, "stop"),
        ({"stop_token_ids": [3, -5]}, "stop_token_ids"),
        ({"stop_token_ids": list(range(65))}, "stop_token_ids"),
    ],
)  # fmt: skip
def test_a_bad_field_is_refused_by_name(changes: dict[str, Any], param: str) -> None:
    """400 with `param` naming the field."""

    def prepare() -> None:
        body = chat(**changes)
        wire.messages_of(body)
        wire.sampling_of(body, 0)

    with pytest.raises(RequestRefused) as info:
        prepare()
    assert info.value.param == param
    assert info.value.status == 400


@pytest.mark.parametrize(
    "body", [b"{", b"", b"\xff", b'{"temperature": NaN}', b"[" * 100_000, b"null", b'"x"']
)
def test_what_is_not_sound_json_is_refused(body: bytes) -> None:
    """Broken, empty, non-UTF-8, NaN, deep nesting: a refusal, never a crash."""
    with pytest.raises(RequestRefused):
        wire.decode(body, wire.ChatBody)


def test_a_missing_field_is_named() -> None:
    """The required field's name is in `param`."""
    with pytest.raises(RequestRefused) as info:
        wire.decode(b'{"messages": []}', wire.ChatBody)
    assert info.value.param == "model"


def test_requests_that_ask_for_nothing_pass() -> None:
    """Defaults that clients send along are no reason to refuse."""
    chat(
        frequency_penalty=0,
        presence_penalty=0,
        logprobs=False,
        logit_bias={},
        tools=[],
        tool_choice="auto",
        response_format={"type": "text"},
        user="u",
        n=1,
        ignore_eos=None,
        min_tokens=None,
        priority=None,
    )


def test_sampling_takes_every_parameter() -> None:
    """Each applied field reaches the sampling of the choice; seeds of choices differ."""
    body = chat(
        temperature=0.5, top_p=0.9, top_k=40, min_p=0.1, seed=7, max_tokens=9, stop="x",
        stop_token_ids=[3], min_tokens=2, ignore_eos=True,
    )  # fmt: skip
    first, second = wire.sampling_of(body, 0), wire.sampling_of(body, 1)
    assert (first.temperature, first.top_p, first.top_k, first.min_p) == (0.5, 0.9, 40, 0.1)
    assert (first.max_tokens, first.stop, first.stop_token_ids) == (9, ("x",), (3,))
    assert (first.min_tokens, first.ignore_eos) == (2, True)
    assert (first.seed, second.seed) == (7, 8)


def test_defaults_follow_openai() -> None:
    """Temperature 1, no cut-offs; chat runs to the end, completions 16 tokens."""
    sampling = wire.sampling_of(chat(), 0)
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (1.0, 1.0, 0)
    assert sampling.max_tokens is None
    assert wire.sampling_of(text(), 0).max_tokens == 16
    assert wire.sampling_of(chat(max_tokens=5, max_completion_tokens=6), 0).max_tokens == 6
    assert wire.sampling_of(chat(top_k=-1), 0).top_k == 0
    assert 0 <= wire.sampling_of(chat(seed=-1), 0).seed < 2**64
    assert wire.sampling_of(chat(seed=7), 0).row(3)[4:6] == (7, 3)


@pytest.mark.parametrize(
    ("prompt", "count"), [("a", 1), (["a", "b"], 2), ([1, 2], 1), ([[1], [2], [3]], 3)]
)
def test_prompts_in_all_four_forms(prompt: Any, count: int) -> None:
    """A text, texts, ids, lists of ids."""
    assert len(wire.prompts_of(text(prompt=prompt))) == count
    assert get_args(get_type_hints(wire.CompletionBody)["prompt"])
