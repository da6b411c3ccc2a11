"""The HTTP API over a real socket, asked by the unmodified openai client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import openai
import pytest
import uvicorn

from bedplate.core import keys
from bedplate.serving.api import Access, Address, Application, Engine
from bedplate.serving.http import LONGEST_BODY_BYTES

KEY = keys.make()
OTHER_KEY = keys.make()
INTERNAL = "internal-secret"


@dataclass(frozen=True)
class Running:
    """A server in this process, and how to call it."""

    url: str
    engine: Engine
    application: Application

    def client(self, key: str = KEY) -> openai.OpenAI:
        """An openai client that does not try again."""
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=30)


@contextlib.contextmanager
def running(engine: Engine, send_buffer_bytes: int | None = None) -> Iterator[Running]:
    """Serve `engine` on a free loopback port, from a thread; the kernel keeps what it likes of
    unread answers, or `send_buffer_bytes`."""
    ring = keys.KeyRing({"one": keys.hash_key(KEY), "two": keys.hash_key(OTHER_KEY)})
    application = Application(engine, Access(ring, INTERNAL), engine.metrics_text)
    address = Address(port=0)
    listener = address.bind()
    if send_buffer_bytes is not None:  # connections inherit it
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
    config = uvicorn.Config(application.build(), log_config=None, access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield Running(address.url(listener), engine, application)
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@pytest.fixture
def server(tiny: Engine) -> Iterator[Running]:
    """The tiny model, served."""
    with running(tiny) as found:
        yield found


MESSAGES = [{"role": "user", "content": "hello"}]


def chat(server: Running, **parameters: object):  # type: ignore[no-untyped-def]
    """One chat request by the openai client."""
    values = {"model": "tiny", "messages": MESSAGES, "max_tokens": 8, "temperature": 0}
    with server.client() as client:
        return client.chat.completions.create(**{**values, **parameters})


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
            timeout=0.05,
        )
    until = time.monotonic() + 10
    while server.engine.stats().running + server.engine.stats().waiting:
        assert time.monotonic() < until, "requests go on without their client"
        time.sleep(0.01)
    stats = server.engine.stats()
    assert stats.blocks_clean + stats.blocks_cached == server.engine.limits.block_count


def post(server: Running, path: str, body: object, **options: object) -> httpx.Response:
    """A raw POST with the key."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.post(
        server.url + path,
        content=content,
        headers={"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"},
        **{"timeout": 30, **options},  # type: ignore[arg-type]
    )


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


def test_every_route_needs_a_key_but_the_reviewed_ones(server: Running) -> None:
    """The registered route table, and routes that do not exist: 401 without a key."""
    open_routes = set()
    for route in server.application.build().routes:
        for method in route.methods - {"HEAD"}:  # type: ignore[attr-defined]
            path = route.path.replace("{model:path}", "tiny")  # type: ignore[attr-defined]
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic x"}):
                status = httpx.request(method, server.url + path, headers=headers).status_code
                if status != 401:
                    open_routes.add(path)
    assert open_routes == {"/health", "/ready"}
    # Spelled with one slash more, a route is no route: no redirect, which would come before the
    # check and name a host of the client's choice.
    slashed = [path + "/" for path in ("/health", "/ready", "/metrics", "/v1/chat/completions")]
    for path in ("/invocations", "/pause", "/docs", "/openapi.json", "/", *slashed, "//health"):
        for ask in (httpx.post, httpx.get):
            answer = ask(server.url + path, headers={"Host": "evil.example"})
            assert (answer.status_code, len(answer.headers["x-request-id"])) == (401, 32)
        assert post(server, path, {}).status_code == 404


def test_a_host_header_opens_nothing(server: Running) -> None:
    """Authorisation looks at the routed endpoint, not at a URL put together again."""
    answer = httpx.get(server.url + "/v1/models", headers={"Host": "localhost/health?x="})
    assert answer.status_code == 401


def test_keys_do_not_share_prefixes_and_a_salt_narrows(server: Running) -> None:
    """The second request of a key finds its prompt; another key and another salt do not."""

    def cached(key: str, salt: str | None = None) -> int:
        with server.client(key) as client:
            answer = client.chat.completions.create(
                model="tiny",
                messages=[{"role": "user", "content": "x" * 60}],
                max_tokens=1,
                extra_body={"cache_salt": salt},
            )
            return answer.usage.prompt_tokens_details.cached_tokens

    assert cached(KEY) == 0
    assert cached(KEY) > 0
    assert cached(OTHER_KEY) == 0
    assert cached(KEY, "mine") == 0
    assert cached(KEY, "mine") > 0


def test_the_tenant_header_counts_only_with_the_internal_key(server: Running) -> None:
    """Two tenants behind the internal key are apart; for a client's key the header is nothing."""

    def cached(key: str, tenant: str) -> int:
        body = {
            "model": "tiny",
            "max_tokens": 1,
            "messages": [{"role": "user", "content": "y" * 60}],
        }
        headers = {"Authorization": f"Bearer {key}", "X-Bedplate-Tenant": tenant}
        answer = httpx.post(server.url + "/v1/chat/completions", json=body, headers=headers)
        count: int = answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"]
        return count

    assert cached(INTERNAL, "a") == 0
    assert cached(INTERNAL, "b") == 0
    assert cached(INTERNAL, "a") > 0
    assert cached(KEY, "a") == 0
    assert cached(KEY, "b") > 0


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


def test_every_answer_has_a_request_id_and_a_clients_trace_is_not_continued(
    server: Running,
) -> None:
    """X-Request-Id is a fresh trace id; only the internal key's trace goes on."""
    given = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"

    def request_id(key: str) -> str:
        headers = {"Authorization": f"Bearer {key}", "traceparent": given}
        return httpx.get(server.url + "/v1/models", headers=headers).headers["x-request-id"]

    assert request_id(KEY) != "a" * 32
    assert request_id(INTERNAL) == "a" * 32


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


def test_a_key_that_fills_its_share_of_the_queue_leaves_the_other_one_places(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streams of 64 answers until 429: the other key is still served."""
    release, run = threading.Event(), server.engine._runner.run

    def hold(plan: object, stall_ns: int) -> object:
        release.wait(20)
        return run(plan, stall_ns)  # type: ignore[arg-type]

    monkeypatch.setattr(server.engine._runner, "run", hold)
    body = {"model": "tiny", "messages": MESSAGES, "n": 64, "max_tokens": 1, "stream": True}
    headers = {"Authorization": f"Bearer {KEY}"}
    statuses = []
    with contextlib.ExitStack() as streams:
        client = streams.enter_context(httpx.Client(timeout=30))
        while not statuses or statuses[-1] == 200:
            answer = streams.enter_context(
                client.stream(
                    "POST", server.url + "/v1/chat/completions", json=body, headers=headers
                )
            )
            statuses.append(answer.status_code)
        assert statuses == [200] * 12 + [429]
        release.set()
        with server.client(OTHER_KEY) as other:
            found = other.chat.completions.create(
                model="tiny",
                messages=MESSAGES,
                max_tokens=1,  # type: ignore[arg-type]
            )
    assert found.usage is not None
