"""The OpenAI wire format: what a body may hold, and what every field does.

A field is applied, or refused by name, or listed in `IGNORED` with its reason;
anything else is unknown and refused. Decoding is strict: wrong types, unknown
fields and numbers that are not finite never reach the engine.
"""

from __future__ import annotations

import re
from typing import Any, Literal, TypeVar

import msgspec

from bedplate.serving.errors import RequestRefused
from bedplate.serving.sampling import MAX_SEED, Sampling

MOST_CHOICES = 64
MOST_PATIENCE = 1000  # priorities a caller may choose: 0, the default, to this

# Accepted and without effect, each with why.
IGNORED = {
    "user": "an opaque label of the caller",
    "metadata": "stored by OpenAI, nothing is stored here",
    "store": "nothing is stored here",
    "service_tier": "there is one tier",
    "safety_identifier": "an opaque label of the caller",
    "prompt_cache_key": "prefixes are found by content",
    "prompt_cache_options": "blocks are kept as long as they fit",
    "prompt_cache_retention": "blocks are kept as long as they fit",
    "parallel_tool_calls": "without tools it says nothing",
    "verbosity": "the model has no such control",
    "reasoning_effort": "the model does not reason apart",
}


class StreamOptions(msgspec.Struct, forbid_unknown_fields=True):
    """`include_usage`: one more chunk with usage and no choices."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class ResponseFormat(msgspec.Struct):
    """Only plain text is produced."""

    type: str


class TextPart(msgspec.Struct):
    """One part of a message's content; parts other than text are refused."""

    type: str
    text: str | None = None


class Message(msgspec.Struct, forbid_unknown_fields=True):
    """One message. What only tools and audio use is refused unless it is null or empty."""

    role: str
    content: str | list[TextPart] | None = None
    name: str | None = None
    refusal: str | None = None
    tool_calls: list[Any] | None = None
    tool_call_id: str | None = None
    function_call: Any = None
    audio: Any = None


class Common(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Fields that both completion routes take."""

    model: str
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    n: int | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool | None = None
    min_tokens: int | None = None
    priority: int | None = None
    cache_salt: str | None = None
    # Refused unless they ask for nothing.
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    logprobs: bool | int | None = None
    # Ignored: see IGNORED.
    user: str | None = None
    metadata: Any = None
    store: bool | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: Any = None
    prompt_cache_retention: str | None = None


class ChatBody(Common, forbid_unknown_fields=True, kw_only=True):
    """POST /v1/chat/completions."""

    messages: list[Message]
    max_completion_tokens: int | None = None
    response_format: ResponseFormat | None = None
    top_logprobs: int | None = None
    tools: list[Any] | None = None
    tool_choice: Any = None
    functions: list[Any] | None = None
    function_call: Any = None
    modalities: list[str] | None = None
    audio: Any = None
    prediction: Any = None
    web_search_options: Any = None
    moderation: Any = None
    parallel_tool_calls: bool | None = None
    verbosity: str | None = None
    reasoning_effort: str | None = None


class CompletionBody(Common, forbid_unknown_fields=True, kw_only=True):
    """POST /v1/completions."""

    prompt: str | list[str | int | list[int]]
    echo: bool | None = None
    suffix: str | None = None
    best_of: int | None = None


_Body = TypeVar("_Body", bound=Common)


def decode(body: bytes, kind: type[_Body]) -> _Body:
    """The body as `kind`. Raises `RequestRefused` naming the field at fault."""
    try:
        decoded = msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as cause:
        raise RequestRefused(_readable(str(cause)), param=_param(str(cause))) from cause
    except msgspec.DecodeError as cause:
        raise RequestRefused(
            f"the body is not sound JSON: {cause}", code="serving.bad_json"
        ) from cause
    except RecursionError as cause:
        raise RequestRefused("the body is nested too deeply", code="serving.bad_json") from cause
    _refuse_unsupported(decoded)
    return decoded


def _readable(text: str) -> str:
    return text[0].lower() + text[1:].replace("`", "'") if text else "the body is invalid"


def _param(text: str) -> str | None:
    """The field in msgspec's message: `... unknown field `x`` or `... at `$.a[0].b``."""
    if found := re.search(r"(?:unknown field|required field) `([^`]+)`", text):
        return found[1]
    if found := re.search(r"at `\$\.([^`]+)`", text):
        return found[1]
    return None


def _refuse(name: str, why: str) -> None:
    raise RequestRefused(f"{name} {why}", code="serving.unsupported_parameter", param=name)


def _refuse_unsupported(body: Common) -> None:
    for name in ("frequency_penalty", "presence_penalty"):
        if getattr(body, name):
            _refuse(name, f"is {getattr(body, name)}, and penalties are not supported")
    if body.logit_bias:
        _refuse("logit_bias", "is not supported")
    if body.logprobs is not None and body.logprobs is not False:
        _refuse("logprobs", "are not supported")
    if body.n is not None and not 1 <= body.n <= MOST_CHOICES:
        raise RequestRefused(f"n is {body.n}, it must be from 1 to {MOST_CHOICES}", param="n")
    if body.priority is not None and not 0 <= body.priority <= MOST_PATIENCE:
        raise RequestRefused(
            f"priority is {body.priority}, it must be from 0 to {MOST_PATIENCE}: "
            "a caller may give way to others, not go before them",
            param="priority",
        )
    if body.stream_options is not None and not body.stream:
        raise RequestRefused("stream_options needs stream to be true", param="stream_options")
    if isinstance(body, ChatBody):
        _refuse_chat(body)
    elif isinstance(body, CompletionBody):
        for name in ("echo", "suffix"):
            if getattr(body, name):
                _refuse(name, "is not supported")
        if body.best_of is not None and body.best_of != (body.n or 1):
            _refuse("best_of", f"is {body.best_of}, and only the value of n is supported")


def _refuse_chat(body: ChatBody) -> None:
    for name in ("tools", "functions", "audio", "prediction", "web_search_options", "moderation"):
        if getattr(body, name):
            _refuse(name, "are not supported" if name.endswith("s") else "is not supported")
    for name in ("tool_choice", "function_call"):
        if getattr(body, name) not in (None, "none", "auto"):
            _refuse(name, "is not supported")
    if body.response_format is not None and body.response_format.type != "text":
        _refuse("response_format", f"of type {body.response_format.type!r} is not supported")
    if body.modalities not in (None, ["text"]):
        _refuse("modalities", "other than text are not supported")
    if body.top_logprobs:
        _refuse("top_logprobs", "are not supported")


def messages_of(body: ChatBody) -> list[dict[str, Any]]:
    """Messages for the template; text parts are joined, other parts are refused."""
    if not body.messages:
        raise RequestRefused("messages is empty", param="messages")
    found = []
    for i, message in enumerate(body.messages):
        for field in ("tool_calls", "tool_call_id", "function_call", "audio"):
            if getattr(message, field):
                _refuse(f"messages[{i}].{field}", "is not supported")
        content = message.content
        if isinstance(content, list):
            for j, part in enumerate(content):
                if part.type != "text" or part.text is None:
                    raise RequestRefused(
                        f"a part of type {part.type!r} is not supported: this model reads text",
                        param=f"messages[{i}].content[{j}]",
                    )
            content = "".join(part.text or "" for part in content)
        entry: dict[str, Any] = {"role": message.role, "content": content or ""}
        if message.name is not None:
            entry["name"] = message.name
        found.append(entry)
    return found


def sampling_of(body: Common, choice: int) -> Sampling:
    """The sampling of the `choice`-th answer; OpenAI's defaults where a field is absent.

    Answers to one request draw differently: their seeds are consecutive.
    """
    values: dict[str, Any] = {
        "temperature": body.temperature,
        "top_k": body.top_k,
        "top_p": body.top_p,
        "min_p": body.min_p,
        "min_tokens": body.min_tokens,
        "ignore_eos": body.ignore_eos,
        "max_tokens": body.max_tokens,
    }
    if isinstance(body, ChatBody) and body.max_completion_tokens is not None:
        values["max_tokens"] = body.max_completion_tokens
    if isinstance(body, CompletionBody) and body.max_tokens is None:
        values["max_tokens"] = 16
    if body.stop is not None:
        values["stop"] = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop)
    if body.stop_token_ids is not None:
        values["stop_token_ids"] = tuple(body.stop_token_ids)
    if body.seed is not None:
        values["seed"] = (body.seed + choice) % MAX_SEED
    if values["top_k"] == -1:
        values["top_k"] = 0  # vLLM's way to say off
    return Sampling(**{k: v for k, v in values.items() if v is not None})


def prompts_of(body: CompletionBody) -> list[str | list[int]]:
    """One entry a prompt: a text, texts, token ids, or lists of token ids.

    Raises `RequestRefused` for an empty list and for a mixed one.
    """
    prompt = body.prompt
    if isinstance(prompt, str):
        return [prompt]
    ids = [entry for entry in prompt if isinstance(entry, int)]
    texts = [entry for entry in prompt if isinstance(entry, str)]
    lists = [entry for entry in prompt if isinstance(entry, list)]
    if not prompt or len(prompt) not in (len(ids), len(texts), len(lists)):
        raise RequestRefused(
            "prompt must be a text, texts, token ids, or lists of token ids", param="prompt"
        )
    return [ids] if ids else [*texts, *lists]


Kind = Literal["chat", "text"]


def usage(prompt: int, completion: int, cached: int) -> dict[str, Any]:
    """OpenAI's usage object; token counts."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def model_card(name: str, created_s: int) -> dict[str, Any]:
    """OpenAI's model object; `created_s` is Unix time."""
    return {"id": name, "object": "model", "created": created_s, "owned_by": "bedplate"}


def error_body(message: str, status: int, condition: str, param: str | None) -> dict[str, Any]:
    """OpenAI's error object; `code` is the condition."""
    kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": condition}}


def sse(body: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + msgspec.json.encode(body) + b"\n\n"


def error_event(message: str, condition: str) -> bytes:
    """The event that ends a stream which failed, and its `[DONE]`."""
    return sse(error_body(message, 500, condition, None)) + b"data: [DONE]\n\n"
