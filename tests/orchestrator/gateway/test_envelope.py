from __future__ import annotations

import json

import pytest

from bedplate.orchestrator.gateway.envelope import read_envelope
from bedplate.serving.api import MOST_CHOICES, RequestRefused


def test_what_the_gateway_reads_leaves_the_rest_to_the_engine() -> None:
    """Model and n; unknown fields are not its business."""
    body = json.dumps({"model": "m", "n": 2, "anything": {"x": 1}}).encode()
    envelope = read_envelope(body, "m")
    assert (envelope.model, envelope.n) == ("m", 2)
    assert read_envelope(b'{"model": "m", "n": null}', "m").n is None


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        (b"", 400, "bad_json", None),
        (b'{"model": "m"', 400, "bad_json", None),
        (b"\xff", 400, "bad_json", None),
        (b'{"model": "m", "a": ' + b"[" * 100_000, 400, "bad_json", None),
        (b"[]", 400, "invalid_request", None),
        (b"{}", 400, "invalid_request", "model"),
        (b'{"model": 1}', 400, "invalid_request", "model"),
        (b'{"model": "m", "n": "2"}', 400, "invalid_request", "n"),
        (b'{"model": "m", "n": 0}', 400, "invalid_request", "n"),
        (b'{"model": "m", "n": -1}', 400, "invalid_request", "n"),
        (b'{"model": "m", "n": 1000000}', 400, "invalid_request", "n"),
        (b'{"model": "m", "n": 1e40}', 400, "invalid_request", "n"),
        (b'{"model": "other"}', 404, "model_not_found", "model"),
    ],
)
def test_a_wrong_body_is_refused_before_the_engine_sees_it(
    body: bytes, status: int, code: str, param: str | None
) -> None:
    """Row 6 of the gateway cases among them: n has a cap."""
    with pytest.raises(RequestRefused) as told:
        read_envelope(body, "m")
    error = told.value
    assert (error.status, error.condition, error.param) == (status, code, param)


def test_the_most_answers_are_allowed() -> None:
    """The cap itself is within."""
    body = json.dumps({"model": "m", "n": MOST_CHOICES}).encode()
    assert read_envelope(body, "m").n == MOST_CHOICES
    with pytest.raises(RequestRefused, match=f"n is {MOST_CHOICES + 1}"):
        read_envelope(json.dumps({"model": "m", "n": MOST_CHOICES + 1}).encode(), "m")
