"""The gateway's routes: in front of a real engine, and in front of none."""

from __future__ import annotations

import asyncio
import contextlib
import json
import pickle
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import openai
import psutil
import pytest
import uvicorn
from starlette.applications import Starlette
from tests.orchestrator.conftest import MESSAGES, SMALL, client, part, store_keys, until

from bedplate.core import keys
from bedplate.core.paths import run_dir
from bedplate.orchestrator import record
from bedplate.orchestrator.api import Platform
from bedplate.orchestrator.gateway.app import Gateway
from bedplate.orchestrator.gateway.relay import Upstream
from bedplate.serving.api import Access, Address, Application

KEY = keys.make()
INTERNAL = "internal-secret"
LONGEST_BODY_BYTES = 4 << 20


@dataclass(frozen=True)
class Alone:
    """A gateway in this process without an engine."""

    url: str
    gateway: Gateway

    def ask(self, method: str, path: str, **options: object) -> httpx.Response:
        """A request with the key."""
        headers = {"Authorization": f"Bearer {KEY}"}
        return httpx.request(method, self.url + path, headers=headers, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def web() -> Iterator[httpx.Client]:
    """One client without a key: each of its own would read all certificates of the system."""
    with httpx.Client(trust_env=False, timeout=30) as made:
        yield made


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Alone]:
    """A gateway whose engine is not there."""
    ring = keys.KeyRing({"one": keys.hash_key(KEY)})
    gateway = Gateway(Upstream(tmp_path / "none", INTERNAL), Access(ring, INTERNAL), "tiny")
    address = Address(port=0)
    with contextlib.closing(address.bind()) as listener:
        config = uvicorn.Config(gateway.build(), log_config=None, access_log=False)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
        thread.start()
        try:
            until(lambda: server.started, "the gateway listens")
            yield Alone(address.url(listener), gateway)
        finally:
            server.should_exit = True
            thread.join()


def test_without_an_engine_requests_get_503_and_when_to_try_again(alone: Alone) -> None:
    """OpenAI's error object, Retry-After, a request id; models and refusals as ever."""
    for path, body in (
        ("/v1/chat/completions", {"model": "tiny", "messages": MESSAGES}),
        ("/v1/chat/completions", {"model": "tiny", "messages": MESSAGES, "stream": True}),
        ("/v1/completions", {"model": "tiny", "prompt": "a"}),
    ):
        answer = alone.ask("POST", path, json=body)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        assert len(answer.headers["x-request-id"]) == 32
        error = answer.json()["error"]
        assert (error["type"], error["code"]) == ("server_error", "engine_unavailable")
        assert "try again" in error["message"]
    assert alone.ask("GET", "/metrics").status_code == 503
    assert alone.ask("GET", "/v1/models").json()["data"][0]["id"] == "tiny"
    assert alone.ask("GET", "/v1/models/tiny").status_code == 200
    assert alone.ask("GET", "/v1/models/a/b").status_code == 404
    assert alone.ask("POST", "/v1/completions", content=b"{").status_code == 400


def test_health_is_the_gateways_own_and_ready_is_not(alone: Alone) -> None:
    """A gateway without an engine is well, and says what it lacks."""
    health = httpx.get(alone.url + "/health")
    assert (health.status_code, health.json()["state"]) == (200, "ready")
    assert health.json()["engine"]["state"] == "unreachable"
    ready = httpx.get(alone.url + "/ready")
    assert (ready.status_code, ready.json()) == (503, {"ready": False, "engine": "unreachable"})


def test_every_route_needs_a_key_but_the_reviewed_ones(alone: Alone, web: httpx.Client) -> None:
    """Row 2: the registered route table, and routes that do not exist: 401 without a key."""
    open_routes = set()
    for route in alone.gateway.build().routes:
        path = route.path.replace("{model:path}", "tiny")  # type: ignore[attr-defined]
        for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"):
            for headers in ({}, {"Authorization": f"Bearer {KEY}x"}, {"Authorization": KEY}):
                answer = web.request(method, alone.url + path, headers=headers)
                if answer.status_code != 401:
                    open_routes.add((method, path))
    assert open_routes == {(m, p) for m in ("GET", "HEAD") for p in ("/health", "/ready")}
    others = ("/invocations", "/pooling", "/score", "/pause", "/docs", "/openapi.json", "/")
    slashed = [path + "/" for path in ("/health", "/ready", "/metrics", "/v1/completions")]
    for path in (*others, *slashed, "//health"):
        for ask in (web.post, web.get):
            assert ask(alone.url + path, headers={"Host": "evil.example"}).status_code == 401
        answer = alone.ask("POST", path)
        assert (answer.status_code, len(answer.headers["x-request-id"])) == (404, 32)
    assert alone.ask("POST", "/v1/models").status_code == 405


def test_the_gateway_has_the_routes_of_a_bare_server(alone: Alone) -> None:
    """One API, whether or not something stands in front of the engine."""
    bare = Application(None, Access(keys.KeyRing({})), str)  # type: ignore[arg-type]

    def routes(built: Starlette) -> set[tuple[str, frozenset[str]]]:
        return {(r.path, frozenset(r.methods)) for r in built.routes}  # type: ignore[attr-defined]

    assert routes(alone.gateway.build()) == routes(bare.build())


def test_a_refusal_says_nothing_of_keys(alone: Alone) -> None:
    """Row 4: a fixed sentence; neither the wrong key nor any part of the stored ones."""
    wrong = KEY[:-3] + "abc"
    answer = httpx.get(alone.url + "/v1/models", headers={"Authorization": f"Bearer {wrong}"})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["error"]["message"].startswith("the API key is not known")
    for secret in (wrong, wrong[3:20], KEY[3:20], keys.hash_key(KEY)[7:20], "one"):
        assert f"{secret}" not in answer.text.replace("known", "")


def test_a_host_header_opens_nothing(alone: Alone) -> None:
    """Row 3: authorisation sits on the routed endpoint, not on a URL put together again."""
    for host in ("localhost/health?x=", "localhost/openapi.json?x=", "a@b/health"):
        answer = httpx.get(alone.url + "/v1/models", headers={"Host": host})
        assert answer.status_code == 401
    for path in ("/health/../v1/models", "//v1/models", "/v1/models/../../health/x", "/%2e/"):
        assert httpx.get(alone.url + path).status_code == 401


@pytest.fixture(scope="module")
def tenants(tiny_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Base URL and two keys of a platform."""
    data = tmp_path_factory.mktemp("tenants")
    one, two = store_keys(data, "one", "two")
    with Platform.up(str(tiny_file), data_dir=data, port=0, engine_flags=SMALL) as plate:
        yield [plate.base_url, one, two]


def test_tenants_do_not_share_prefixes(tenants: list[str]) -> None:
    """Row 13: no hit across keys, a hit within one; a client's own tenant header is nothing."""
    url, one, two = tenants

    def cached(key: str, **headers: str) -> int:
        body = {
            "model": "tiny",
            "max_tokens": 1,
            "messages": [{"role": "user", "content": "y" * 99}],
        }
        answer = httpx.post(
            f"{url}/chat/completions",
            json=body,
            headers={"Authorization": f"Bearer {key}", **headers},
        )
        count: int = answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"]
        return count

    assert cached(one) == 0
    assert cached(one) > 0
    assert cached(two) == 0
    assert cached(two, **{"X-Bedplate-Tenant": "key:three"}) > 0


def post(plate: Platform, path: str, body: object) -> httpx.Response:
    """A raw POST with the platform's key."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {plate.key}"}
    return httpx.post(plate.url + path, content=content, headers=headers, timeout=30)


CHAT = {"model": "tiny", "messages": MESSAGES, "max_tokens": 1}
INNER = "169.254.169.254"  # where clouds keep their credentials
IMAGE = {"type": "image_url", "image_url": {"url": f"http://{INNER}/latest"}}


@pytest.mark.parametrize(
    ("body", "status", "code", "param", "part"),
    [
        (b"{", 400, "bad_json", None, "JSON"),
        ({**CHAT, "model": "gpt"}, 404, "model_not_found", "model", "'tiny' is"),
        ({**CHAT, "n": 1_000_000}, 400, "invalid_request", "n", "1000000"),
        ({**CHAT, "x": 1}, 400, "invalid_request", "x", "'x'"),
        ({**CHAT, "temperature": "hot"}, 400, "invalid_request", "temperature", "expected"),
        (b'{"model":"tiny","messages":[],"temperature":NaN}', 400, "bad_json", None, "JSON"),
        ({**CHAT, "messages": [{"role": "user", "content": [IMAGE]}]},
         400, "invalid_request", "messages[0].content[0]", "image_url"),
        ({**CHAT, "messages": [{"role": "user", "content": "a" * 20_000}]},
         400, "context_length_exceeded", "prompt", "8192"),
        ({**CHAT, "response_format": {"type": "json_schema"}},
         400, "unsupported_parameter", "response_format", "json_schema"),
        (b" " * (LONGEST_BODY_BYTES + 1), 413, "body_too_large", None, "4194304"),
    ],
)  # fmt: skip
def test_a_wrong_body_gets_one_clear_sentence(
    plate: Platform, body: object, status: int, code: str, param: str | None, part: str
) -> None:
    """Rows 5, 6 and 7 among them: status, code, the field at fault, the value; no traceback."""
    answer = post(plate, "/v1/chat/completions", body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (status, code, param)
    assert part in error["message"]
    assert "Traceback" not in error["message"]


def test_an_over_long_prompt_names_both_lengths(plate: Platform) -> None:
    """How long it is and how much fits, for chat and completions."""
    ids = [5] * 9000
    answer = post(plate, "/v1/completions", {"model": "tiny", "prompt": ids})
    message = answer.json()["error"]["message"]
    assert answer.status_code == 400
    assert "9000" in message
    assert "8192" in message


def test_no_stream_of_schemas_grows_memory(plate: Platform) -> None:
    """Row 7: hundreds of distinct schemas are refused one by one, and nothing is kept."""
    engine, gateway = part(plate, "engine"), part(plate, "gateway")

    def burst(start: int) -> None:
        headers = {"Authorization": f"Bearer {plate.key}"}
        with httpx.Client(headers=headers) as session:
            for i in range(start, start + 200):
                schema = {"name": f"s{i}", "schema": {"title": "x" * 200 + str(i)}}
                body = {**CHAT, "response_format": {"type": "json_schema", "json_schema": schema}}
                assert session.post(f"{plate.base_url}/chat/completions", json=body).is_client_error

    burst(0)
    before = engine.memory_info().rss + gateway.memory_info().rss
    burst(200)
    assert engine.memory_info().rss + gateway.memory_info().rss - before < 4 << 20


def test_bytes_that_are_no_http_end_only_their_connection(plate: Platform) -> None:
    """Row 1: pickles and noise at the gateway's port and the engine's socket: no code runs."""

    class Boom:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (open, (str(marker), "w"))

    marker = plate.data / "pickled"
    port = int(plate.url.rpartition(":")[2])
    sent = [pickle.dumps(Boom()), b"\x00" * 4096, b"GET /" + b"a" * 200_000, b"\x16\x03\x01\x02"]
    for data in sent:
        for family, address in (
            (socket.AF_INET, ("127.0.0.1", port)),
            (socket.AF_UNIX, str(run_dir(plate.data) / record.ENGINE_SOCKET)),
        ):
            with socket.socket(family) as raw:
                raw.settimeout(10)
                raw.connect(address)
                with contextlib.suppress(OSError):
                    raw.sendall(data)
                    raw.shutdown(socket.SHUT_WR)
                    while raw.recv(65536):
                        pass
    assert not marker.exists()
    with client(plate) as api:
        assert api.chat.completions.create(**CHAT).choices  # type: ignore[call-overload]
    children = plate.status()["children"]
    assert [child["restarts"] for child in children] == [0, 0]


def test_nothing_listens_beyond_loopback(plate: Platform) -> None:
    """Row 1: one TCP port, of 127.0.0.1; the rest are Unix sockets only their user may open."""
    listening = [
        (process.pid, connection.laddr)
        for process in [part(plate, "gateway"), part(plate, "engine")]
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    (only,) = listening
    assert only[0] == part(plate, "gateway").pid
    assert only[1].ip == "127.0.0.1"
    mode = (run_dir(plate.data) / record.ENGINE_SOCKET).stat().st_mode
    assert mode & 0o077 == 0


def test_the_engines_socket_needs_the_internal_key(plate: Platform) -> None:
    """Who reaches the socket without it gets 401, also with a client's key."""
    transport = httpx.HTTPTransport(uds=str(run_dir(plate.data) / record.ENGINE_SOCKET))
    with httpx.Client(transport=transport, base_url="http://localhost") as engine:
        for key, status in ((plate.key, 401), ("x", 401), (plate.internal_key, 200)):
            answer = engine.get("/v1/models", headers={"Authorization": f"Bearer {key}"})
            assert answer.status_code == status


def test_a_client_that_leaves_frees_its_request(plate: Platform) -> None:
    """A closed stream and a closed whole request: the engine has no request left, no block used."""
    with client(plate) as api:
        stream = api.chat.completions.create(
            model="tiny", messages=MESSAGES, stream=True, extra_body={"ignore_eos": True}
        )
        next(iter(stream))
        stream.close()
        impatient = api.with_options(timeout=0.3)
        with pytest.raises(openai.APITimeoutError):
            impatient.chat.completions.create(
                model="tiny", messages=MESSAGES, n=30, extra_body={"ignore_eos": True}
            )

    def idle() -> bool:
        headers = {"Authorization": f"Bearer {plate.key}"}
        text = httpx.get(f"{plate.url}/metrics", headers=headers).text
        figures = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
        return not any(
            float(value)
            for name, value in figures.items()
            if name.startswith(("bedplate_engine_running", "bedplate_engine_waiting"))
            or (name.startswith("bedplate_engine_kv_blocks") and 'state="used"' in name)
        )

    until(idle, "the engine is idle")


def test_the_request_id_is_the_engines_too(plate: Platform) -> None:
    """X-Request-Id is the trace id, and part of the answer's own id."""
    answer = post(plate, "/v1/chat/completions", CHAT)
    assert answer.json()["id"] == "chatcmpl-" + answer.headers["x-request-id"]
