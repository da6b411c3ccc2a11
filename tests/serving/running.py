"""A served engine in this process, its keys, and how tests ask it."""

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
import uvicorn

from bedplate.core import keys
from bedplate.serving.api import Access, Address, Application, Engine

KEY = keys.make()

OTHER_KEY = keys.make()

INTERNAL = "internal-secret"

MESSAGES = [{"role": "user", "content": "hello"}]


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


def chat(server: Running, **parameters: object):  # type: ignore[no-untyped-def]
    """One chat request by the openai client."""
    values = {"model": "tiny", "messages": MESSAGES, "max_tokens": 8, "temperature": 0}
    with server.client() as client:
        return client.chat.completions.create(**{**values, **parameters})


def post(server: Running, path: str, body: object, **options: object) -> httpx.Response:
    """A raw POST with the key."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.post(
        server.url + path,
        content=content,
        headers={"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"},
        **{"timeout": 30, **options},  # type: ignore[arg-type]
    )
