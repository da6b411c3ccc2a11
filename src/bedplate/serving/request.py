"""One request inside the engine: what was asked, what was made so far.

`Live.push` takes a sampled id and decides, in this order: no token (NaN logits),
an end id, a stop id, a stop string, the length. Text is released as the
detokeniser and the stop matcher allow. Before `min_tokens` the ids that end are
`barred`: the engine keeps them from being drawn, so that the model never goes on
behind its own end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from bedplate.serving.errors import AnswerLost, EngineStopped, ServingError
from bedplate.serving.sampling import Sampling
from bedplate.serving.text import Detokenizer, StopMatcher
from bedplate.serving.tokenizer import Tokenizer


class FinishReason(StrEnum):
    """Why a request ended."""

    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"
    ERROR = "error"


@dataclass(frozen=True)
class Request:
    """What a caller asks of the engine.

    `prompt` are token ids; `domain` separates prefix sharing between callers;
    lower `priority` goes first; `trace_id` joins the logs of one request. `caller`
    has a share of the queue; None is this process itself, which has all of it.
    """

    prompt: Sequence[int]
    sampling: Sampling = field(default_factory=Sampling)
    priority: int = 0
    domain: tuple[int, int] = (0, 0)
    trace_id: str | None = None
    caller: str | None = None


@dataclass(frozen=True)
class Output:
    """What one step added to one request.

    `text` is safe to send at once; it may be empty. Token counts are totals so
    far; `cached_tokens` of the prompt were found in the pool. `error` is one
    sentence when `finish_reason` is ERROR.
    """

    request: int
    text: str
    tokens: tuple[int, ...]
    finish_reason: FinishReason | None
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    error: str | None = None
    engine_ended: bool = False

    def failure(self) -> ServingError:
        """The error that ended the request: its own, or the engine's."""
        kind = EngineStopped if self.engine_ended else AnswerLost
        return kind(self.error or "the request failed")


Sink = Callable[[Output], None]


class Live:
    """A request from submission to its last output. Engine thread only."""

    def __init__(
        self,
        identity: int,
        request: Request,
        sink: Sink,
        tokenizer: Tokenizer,
        max_tokens: int,
        now_ns: int,
    ) -> None:
        self.identity, self.request, self.sink = identity, request, sink
        self.max_tokens = max_tokens
        self.arrived_ns = now_ns
        self.admitted_ns: int | None = None
        self.first_token_ns: int | None = None
        self.last_token_ns: int | None = None
        self.generated = 0
        self.cached_tokens = 0
        self._detokenizer = Detokenizer(tokenizer.token_bytes)
        self._stops = StopMatcher(request.sampling.stop)
        sampling = request.sampling
        self._end_ids = frozenset() if sampling.ignore_eos else tokenizer.end_ids
        self._stop_ids = frozenset(sampling.stop_token_ids)
        self._size = tokenizer.size
        self._least = sampling.min_tokens
        self._barred = np.array(sorted(self._end_ids | self._stop_ids), np.int64)

    def token_at(self, now_ns: int) -> int | None:
        """A token came; nanoseconds since the one before, None for the first."""
        before, self.last_token_ns = self.last_token_ns, now_ns
        if before is None:
            self.first_token_ns = now_ns
            return None
        return now_ns - before

    def barred(self) -> NDArray[np.int64] | None:
        """Ids that must not be drawn next, if any."""
        return self._barred if self.generated < self._least and len(self._barred) else None

    def push(self, token: int) -> Output:
        """Take one sampled id; the output's `finish_reason` says whether it was the last."""
        if not 0 <= token < self._size:
            return self.fail("the model's logits hold NaN, so no token can be chosen")
        self.generated += 1
        if token in self._end_ids or token in self._stop_ids:
            return self._output(self._release_all(), (token,), FinishReason.STOP)
        text = self._detokenizer.push(token)
        if self.generated >= self._least:
            text = self._stops.push(text)
        if self._stops.matched is not None:
            return self._output(text, (token,), FinishReason.STOP)
        if self.generated >= self.max_tokens:
            text += self._release_all()
            matched = self._stops.matched is not None
            reason = FinishReason.STOP if matched else FinishReason.LENGTH
            return self._output(text, (token,), reason)
        return self._output(text, (token,), None)

    def abort(self) -> Output:
        """The last output of a request that its caller no longer wants."""
        return self._output("", (), FinishReason.ABORT)

    def fail(self, message: str, *, engine_ended: bool = False) -> Output:
        """The last output of a request that cannot go on, alone or with the whole engine."""
        return replace(self._output("", (), FinishReason.ERROR, message), engine_ended=engine_ended)

    def _release_all(self) -> str:
        """A cut character flushes once, and it may still complete a stop string."""
        text = self._stops.push(self._detokenizer.finish())
        return text if self._stops.matched is not None else text + self._stops.finish()

    def _output(
        self,
        text: str,
        tokens: tuple[int, ...],
        reason: FinishReason | None,
        error: str | None = None,
    ) -> Output:
        return Output(
            self.identity,
            text,
            tokens,
            reason,
            len(self.request.prompt),
            self.generated,
            self.cached_tokens,
            error,
        )
