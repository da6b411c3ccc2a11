"""The reference page of the HTTP API says what happens to every field, route and error."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from bedplate.core import keys
from bedplate.serving import wire
from bedplate.serving.api import Access, Application, RequestRefused

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "http-api.md").read_text()
ROWS = re.findall(r"^\| `(\w+)` \| (both|chat|completions) \| (\w+)(.*) \|$", PAGE, re.M)
CHAT = {f.name for f in msgspec.structs.fields(wire.ChatBody)}
TEXT = {f.name for f in msgspec.structs.fields(wire.CompletionBody)}
# Values that ask for something, by field; other refused fields refuse any text.
ASKING = {
    "frequency_penalty": 0.5,
    "presence_penalty": 0.5,
    "logit_bias": {"1": 1},
    "logprobs": True,
    "top_logprobs": 2,
    "response_format": {"type": "json_object"},
    "tools": [{}],
    "tool_choice": "required",
    "functions": [{}],
    "modalities": ["audio"],
    "echo": True,
    "best_of": 2,
}


def test_every_field_has_one_row() -> None:
    """Of the routes that take it, and no other field has any."""
    told = {name: routes for name, routes, _, _ in ROWS}
    assert len(told) == len(ROWS)
    expected = {
        name: "both" if name in CHAT & TEXT else "chat" if name in CHAT else "completions"
        for name in CHAT | TEXT
    }
    assert told == expected


def test_the_ignored_fields_are_those_of_the_code() -> None:
    """With a reason each."""
    told = {name: reason for name, _, what, reason in ROWS if what == "ignored"}
    assert set(told) == set(wire.IGNORED)
    assert all(reason.startswith(": ") for reason in told.values())


@pytest.mark.parametrize(
    ("name", "routes"), [(name, routes) for name, routes, what, _ in ROWS if what == "refused"]
)
def test_a_refused_field_is_refused(name: str, routes: str) -> None:
    """By its name, with 400."""
    value = ASKING.get(name, "x" if name != "web_search_options" else {"a": 1})
    kind: type[wire.Common] = wire.CompletionBody if routes == "completions" else wire.ChatBody
    body = {"model": "m", name: value}
    body |= {"prompt": "a"} if routes == "completions" else {"messages": []}
    with pytest.raises(RequestRefused) as told:
        wire.decode(msgspec.json.encode(body), kind)
    assert (told.value.status, told.value.param) == (400, name)


def test_every_row_says_one_of_three_things() -> None:
    """Applied, refused or ignored."""
    assert {what for _, _, what, _ in ROWS} == {"applied", "refused", "ignored"}


def test_every_route_is_on_the_page() -> None:
    """With its method, and whether it needs a key."""
    application = Application(None, Access(keys.KeyRing({})), str)  # type: ignore[arg-type]
    routes = {
        (method, route.path.replace(":path", ""))  # type: ignore[attr-defined]
        for route in application.build().routes
        for method in route.methods - {"HEAD"}  # type: ignore[attr-defined]
    }
    rows = re.findall(r"^\| (`(?:GET|POST) .*?`) \| (yes|no) \|", PAGE, re.M)
    told = {tuple(each.split(" ")) for cell, _ in rows for each in re.findall(r"`([^`]+)`", cell)}
    assert told == routes
    opened = {cell.strip("`").split(" ")[1] for cell, key in rows if key == "no"}
    assert opened == {"/health", "/ready"}


def test_every_error_code_of_requests_is_on_the_page() -> None:
    """Each code that serving and the gateway give to a client."""
    root = Path(wire.__file__).parents[1]
    found = set()
    for folder in ("serving", "orchestrator/gateway"):
        for path in (root / folder).glob("*.py"):
            text = path.read_text()
            if "RequestRefused" in text or "error_event" in text or "http" in path.name:
                found |= set(re.findall(r'code="serving\.(\w+)"', text))
                found |= set(re.findall(r'error_event\("[^"]*", "(\w+)"\)', text))
    inner = {"address", "port_in_use", "port_forbidden"}  # of commands, not of requests
    told = set(re.findall(r"^\| (?:\d{3}|in a stream) \| `(\w+)` \|", PAGE, re.M))
    assert found - inner <= told
    assert {"invalid_api_key", "engine_unavailable", "engine_lost", "queue_full"} <= told
