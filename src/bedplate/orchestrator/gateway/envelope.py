"""What the gateway itself reads of a request body: enough to refuse early.

The rest belongs to the engine. What is refused here costs no engine anything, and
is refused with the same words while none runs.
"""

from __future__ import annotations

import msgspec

from bedplate.serving.api import MOST_CHOICES, RequestRefused


class Envelope(msgspec.Struct):
    """The fields that decide where a request goes, and how much it may ask for."""

    model: str
    n: int | None = None


def read_envelope(body: bytes, model: str) -> Envelope:
    """The envelope of a body for `model`. Raises `RequestRefused` (400, or 404 for another)."""
    try:
        envelope = msgspec.json.decode(body, type=Envelope)
    except msgspec.ValidationError as cause:
        text = str(cause).replace("`", "'")
        param = "n" if "$.n" in text else "model" if "model" in text else None
        raise RequestRefused(text[0].lower() + text[1:], param=param) from cause
    except (msgspec.DecodeError, RecursionError) as cause:
        reason = "it is nested too deeply" if isinstance(cause, RecursionError) else cause
        raise RequestRefused(
            f"the body is not sound JSON: {reason}", code="serving.bad_json"
        ) from cause
    if envelope.model != model:
        raise unknown_model(envelope.model, model)
    if envelope.n is not None and not 1 <= envelope.n <= MOST_CHOICES:
        raise RequestRefused(f"n is {envelope.n}, it must be from 1 to {MOST_CHOICES}", param="n")
    return envelope


def unknown_model(asked: str, served: str) -> RequestRefused:
    """404 that names what is served."""
    return RequestRefused(
        f"the model {asked!r} is not served here; {served!r} is",
        code="serving.model_not_found",
        param="model",
        status=404,
    )
