"""Whether a request can run at all: what no waiting would mend is refused at once.

Pure: limits and vocabulary in, a number or a refusal out.
"""

from __future__ import annotations

from collections.abc import Sequence

from bedplate.serving.errors import RequestRefused
from bedplate.serving.request import Request
from bedplate.serving.scheduler import Limits


def room_for(request: Request, limits: Limits, vocabulary: int) -> int:
    """The most tokens the request may generate. Raises `RequestRefused`."""
    length = len(request.prompt)
    longest = min(limits.max_model_tokens, limits.block_count * limits.block_tokens)
    if length == 0:
        raise RequestRefused("the prompt is empty", param="prompt")
    if (bad := _outside(request.prompt, vocabulary)) is not None:
        raise RequestRefused(
            f"token id {bad} is outside the vocabulary of {vocabulary}", param="prompt"
        )
    if length + 1 > longest:
        raise RequestRefused(
            f"the prompt has {length} tokens, this model's context holds {longest} with the answer",
            code="serving.context_length_exceeded",
            param="prompt",
        )
    stop_ids = request.sampling.stop_token_ids
    if stop_ids and max(stop_ids) >= vocabulary:
        raise RequestRefused(
            f"stop_token_ids holds {max(stop_ids)}, which is outside the vocabulary "
            f"of {vocabulary}",
            param="stop_token_ids",
        )
    wanted, room = request.sampling.max_tokens, longest - length
    return room if wanted is None else min(wanted, room)


def _outside(ids: Sequence[int], size: int) -> int | None:
    """The first id that is not in [0, size), if any."""
    for extreme in (min(ids), max(ids)):
        if not 0 <= extreme < size:
            return extreme
    return None
