"""Talking to a gateway: one prompt, streamed, with the times that people ask for."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from bedplate.core.command import quoted
from bedplate.orchestrator.errors import GatewayError, QuestionRefused

# Between two chunks may lie another's long prompt.
_WRONG_REQUEST = (400, 413, 422)  # of RFC 9110: the client's own fault, not its key's
_TIMEOUT = httpx.Timeout(120.0, connect=5.0)


@dataclass(frozen=True)
class Reply:
    """An answer and how fast it came. Rates over the tokens after the first."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    time_to_first_token_ns: int
    elapsed_ns: int

    @property
    def tokens_per_second(self) -> float:
        """Generation rate; 0 for a single token."""
        span_ns = self.elapsed_ns - self.time_to_first_token_ns
        return (self.completion_tokens - 1) * 1e9 / span_ns if span_ns > 0 else 0.0


def ask(
    url: str,
    key: str,
    model: str,
    messages: Sequence[dict[str, str]],
    *,
    on_text: Callable[[str], None] = lambda text: None,
    **parameters: Any,
) -> Reply:
    """Send a conversation, hand out the text as it comes, and return the whole.

    `url` is the gateway's root. Raises `GatewayError` with the server's sentence,
    `QuestionRefused` when it is of the request itself.
    """
    body = {
        "model": model,
        "messages": list(messages),
        "stream": True,
        "stream_options": {"include_usage": True},
        **parameters,
    }
    pieces: list[str] = []
    usage: dict[str, int] = {}
    first: int | None = None
    with httpx.Client(timeout=_TIMEOUT, trust_env=False) as client:
        start = time.monotonic_ns()
        for event in _events(client, url, key, body):
            usage = event.get("usage") or usage
            for choice in event["choices"]:
                text = choice["delta"].get("content") or ""
                if text:
                    first = first or time.monotonic_ns()
                    pieces.append(text)
                    on_text(text)
        end = time.monotonic_ns()
    return Reply(
        "".join(pieces),
        usage.get("prompt_tokens", 0),
        usage.get("completion_tokens", 0),
        (first or end) - start,
        end - start,
    )


def _events(
    client: httpx.Client, url: str, key: str, body: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """The events of one streamed chat. Raises `GatewayError` for an error instead."""
    route, headers = f"{url}/v1/chat/completions", {"Authorization": f"Bearer {key}"}
    try:
        with client.stream("POST", route, json=body, headers=headers) as answer:
            if answer.status_code != 200:
                raise _refused(answer.status_code, answer.read())
            for line in answer.iter_lines():
                if not line.startswith("data: ") or line == "data: [DONE]":
                    continue
                event: dict[str, Any] = json.loads(line.removeprefix("data: "))
                if "error" in event:
                    raise GatewayError(str(event["error"]["message"]))
                yield event
    except httpx.HTTPError as cause:
        raise GatewayError(
            f"no answer from {url}: {cause}", remedy=f"see {quoted('status')}"
        ) from cause


def _refused(status: int, body: bytes) -> GatewayError:
    try:
        message = json.loads(body)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        message = f"the server answered {status}"
    kind = QuestionRefused if status in _WRONG_REQUEST else GatewayError
    return kind(str(message))
