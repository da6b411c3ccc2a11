"""Who may ask what: keys, tenants, routes, request ids and shares of the queue."""

from __future__ import annotations

import contextlib
import threading

import httpx
import pytest
from tests.serving.running import INTERNAL, KEY, MESSAGES, OTHER_KEY, Running, post


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
