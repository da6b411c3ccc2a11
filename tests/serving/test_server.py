"""The HTTP API over a real socket, asked by the unmodified openai client."""

from __future__ import annotations

import json
import time

import httpx
import openai
import pytest
from tests.serving.running import KEY, MESSAGES, Running, chat, post

from bedplate.serving.http import LONGEST_BODY_BYTES


def test_chat_parses_in_the_clients_own_types(server: Running) -> None:
    """A whole answer with usage."""
    answer = chat(server)
    assert answer.object == "chat.completion"
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert answer.choices[0].message.role == "assistant"
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_streamed_and_whole_text_are_identical(server: Running) -> None:
    """The pieces join to the whole answer; the role comes first, the reason last."""
    whole = chat(server)
    with server.client() as client:
        chunks = list(
            client.chat.completions.create(
                model="tiny", messages=MESSAGES, max_tokens=8, temperature=0, stream=True
            )
        )
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == whole.choices[0].message.content
    assert chunks[-1].choices[0].finish_reason == whole.choices[0].finish_reason
    assert all(chunk.usage is None for chunk in chunks)


def test_usage_comes_once_and_last_when_asked(server: Running) -> None:
    """`include_usage`: exactly one chunk with usage and no choices; `{}` asks for none."""

    def chunks(options: dict[str, bool]) -> list[dict[str, object]]:
        body = {"model": "tiny", "messages": MESSAGES, "max_tokens": 4, "stream": True}
        answer = post(server, "/v1/chat/completions", {**body, "stream_options": options})
        lines = [line for line in answer.text.split("\n\n") if line]
        assert lines[-1] == "data: [DONE]"
        return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]

    asked = chunks({"include_usage": True})
    assert [i for i, c in enumerate(asked) if c.get("usage")] == [len(asked) - 1]
    assert asked[-1]["choices"] == []
    assert not any(c.get("usage") for c in chunks({}))


def test_several_choices_differ_and_the_prompt_counts_once(server: Running) -> None:
    """n=3 with a seed: three texts by three seeds, the same again on repeating."""
    parameters = {"n": 3, "temperature": 1.5, "seed": 11, "extra_body": {"ignore_eos": True}}
    one, two = chat(server, **parameters), chat(server, **parameters)
    texts = [choice.message.content for choice in one.choices]
    assert texts == [choice.message.content for choice in two.choices]
    assert [choice.index for choice in one.choices] == [0, 1, 2]
    assert len(set(texts)) == 3
    assert one.usage.prompt_tokens == chat(server).usage.prompt_tokens
    assert one.usage.completion_tokens == 24


def test_completions_take_ids_and_texts(server: Running) -> None:
    """A list of id lists gives one choice each, and the text of ids is that of the text."""
    with server.client() as client:
        ids = server.engine.tokenizer.encode("hello")
        parameters = {"model": "tiny", "max_tokens": 5, "temperature": 0}
        answer = client.completions.create(prompt=[ids, ids], **parameters)
        longer = client.completions.create(prompt=[ids, ids * 3], n=2, **parameters)
        text = client.completions.create(prompt="hello", **parameters)
        stream = client.completions.create(prompt="hello", stream=True, **parameters)
        pieces = "".join(chunk.choices[0].text for chunk in stream)
    assert [choice.text for choice in answer.choices] == [text.choices[0].text] * 2
    assert pieces == text.choices[0].text
    # A prompt is counted once, however many choices it has.
    assert longer.usage.prompt_tokens == 4 * len(ids)
    assert longer.usage.completion_tokens == 4 * 5


def test_a_stop_string_is_not_sent_by_any_route(server: Running) -> None:
    """The greedy text cut at a piece of itself: streamed, whole, chat and completion."""
    with server.client() as client:
        text = client.completions.create(
            model="tiny", prompt="hello", max_tokens=12, temperature=0
        ).choices[0].text  # fmt: skip
        stop = text[3:6]
        parameters = {"model": "tiny", "prompt": "hello", "max_tokens": 12, "temperature": 0}
        whole = client.completions.create(stop=[stop], **parameters).choices[0]
        chunks = list(client.completions.create(stop=stop, stream=True, **parameters))
    assert whole.text == text[: text.index(stop)]
    assert whole.finish_reason == "stop"
    assert "".join(c.choices[0].text for c in chunks) == whole.text


def test_a_client_that_leaves_frees_its_blocks(server: Running) -> None:
    """Closing a stream, and closing the connection of a whole answer, abort the request."""
    with server.client() as client:
        stream = client.chat.completions.create(
            model="tiny", messages=MESSAGES, max_tokens=100, stream=True,
            extra_body={"ignore_eos": True},
        )  # fmt: skip
        next(iter(stream))
        stream.close()
    with pytest.raises(httpx.ReadTimeout):
        post(
            server,
            "/v1/chat/completions",
            {"model": "tiny", "messages": MESSAGES, "n": 64, "ignore_eos": True},
            timeout=httpx.Timeout(30, read=0.05),
        )
    until = time.monotonic() + 10
    while server.engine.stats().running + server.engine.stats().waiting:
        assert time.monotonic() < until, "requests go on without their client"
        time.sleep(0.01)
    stats = server.engine.stats()
    assert stats.blocks_clean + stats.blocks_cached == server.engine.limits.block_count


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        (b"{", 400, "bad_json", None),
        ({"model": "gpt", "messages": MESSAGES}, 404, "model_not_found", "model"),
        ({"model": "tiny", "messages": MESSAGES, "n": 1000000}, 400, "invalid_request", "n"),
        ({"model": "tiny", "messages": MESSAGES, "x": 1}, 400, "invalid_request", "x"),
        ({"model": "tiny", "messages": MESSAGES, "stop_token_ids": [99999999]},
         400, "invalid_request", "stop_token_ids"),
        ({"model": "tiny", "messages": [{"role": "user", "content": "a" * 4000}]},
         400, "context_length_exceeded", "prompt"),
        (b" " * (LONGEST_BODY_BYTES + 1), 413, "body_too_large", None),
    ],
)  # fmt: skip
def test_a_wrong_body_gets_an_error_object(
    server: Running, body: object, status: int, code: str, param: str | None
) -> None:
    """Status, code and param; one sentence."""
    answer = post(server, "/v1/chat/completions", body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (status, code, param)
    assert error["message"]
    assert "Traceback" not in error["message"]


def test_a_prompt_that_cannot_fit_is_never_tokenised(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither template nor tokenizer sees megabytes; the longest that might fit they do see."""
    seen: list[int] = []
    encode = type(server.engine.tokenizer).encode

    def watched(self: object, text: str, **options: bool) -> list[int]:
        seen.append(len(text))
        return encode(self, text, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(type(server.engine.tokenizer), "encode", watched)
    most = server.engine.limits.max_model_tokens * server.engine.tokenizer.longest_token_bytes
    for size, calls in ((most + 1, 0), (most, 1)):
        for path, prompt in (
            ("/v1/completions", {"prompt": "a" * size}),
            ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a" * size}]}),
        ):
            seen.clear()
            error = post(server, path, {"model": "tiny", **prompt}).json()["error"]
            assert (error["code"], len(seen)) == ("context_length_exceeded", calls)


def test_models_health_and_metrics(server: Running) -> None:
    """The model card parses; health tells progress; metrics carry our names and vLLM's."""
    chat(server)
    with server.client() as client:
        assert [m.id for m in client.models.list()] == ["tiny"]
        assert client.models.retrieve("tiny").owned_by == "bedplate"
        assert 0 <= time.time() - client.models.retrieve("tiny").created < 3600
        with pytest.raises(openai.NotFoundError, match="'other'"):
            client.models.retrieve("other")
    health = httpx.get(server.url + "/health")
    assert (health.status_code, health.json()["state"]) == (200, "ready")
    assert isinstance(health.json()["last_progress_ns"], int)
    text = httpx.get(server.url + "/metrics", headers={"Authorization": f"Bearer {KEY}"}).text
    assert (
        'bedplate_engine_requests_total{code="ok",engine="bedplate",model_name="tiny"} 1.0' in text
    )
    assert "vllm:request_success_total{" in text
    assert "vllm:time_to_first_token_seconds_bucket{" in text


def test_an_engine_that_fails_ends_streams_with_an_error_event(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client sees an API error, then 503 on the next request and on /health."""
    from bedplate.hal.api import DeviceError

    calls = []
    run = server.engine._runner.run

    def lose(plan: object, stall_ns: int) -> object:
        calls.append(plan)
        if len(calls) > 3:
            raise DeviceError("the device is gone")
        return run(plan, stall_ns)  # type: ignore[arg-type]

    monkeypatch.setattr(server.engine._runner, "run", lose)
    with server.client() as client, pytest.raises(openai.APIError, match="device is gone"):
        list(
            client.chat.completions.create(
                model="tiny",
                messages=MESSAGES,
                max_tokens=50,
                stream=True,
                extra_body={"ignore_eos": True},
            )
        )
    answer = post(server, "/v1/chat/completions", {"model": "tiny", "messages": MESSAGES})
    assert answer.status_code == 503
    assert httpx.get(server.url + "/health").status_code == 503
