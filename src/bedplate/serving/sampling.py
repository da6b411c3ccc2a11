"""Sampling parameters of one request, and the row they become on the device."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, field

from bedplate.serving.errors import RequestRefused

MOST_STOPS = 16
MOST_STOP_IDS = 64
MAX_SEED = 2**64
HOTTEST = 2  # OpenAI's range; far above it every token is as likely as any other
COLDEST = 1e-6  # below it a float32 softmax is greedy, and 1/temperature would overflow


@dataclass(frozen=True)
class Sampling:
    """How to pick tokens, and when to stop.

    `temperature` 0 is greedy; `top_k` 0, `top_p` 1 and `min_p` 0 are off. Equal
    `seed`, prompt and parameters give equal draws; without one it is random.
    `max_tokens` None means up to the context's end. Before `min_tokens` are made, no
    end or stop id is drawn and no stop string looked for.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = field(default_factory=lambda: secrets.randbits(64))
    max_tokens: int | None = None
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        """Raise `RequestRefused` naming the first parameter out of range."""
        ranges: list[tuple[str, bool, str]] = [
            ("temperature", math.isfinite(self.temperature) and 0 <= self.temperature <= HOTTEST,
             f"a number from 0 to {HOTTEST}"),
            ("top_k", 0 <= self.top_k < 2**31, "0 or more"),
            ("top_p", 0 < self.top_p <= 1, "above 0 and at most 1"),
            ("min_p", 0 <= self.min_p <= 1, "from 0 to 1"),
            ("max_tokens", self.max_tokens is None or self.max_tokens >= 1, "1 or more"),
            ("min_tokens", self.min_tokens >= 0, "0 or more"),
            ("stop", len(self.stop) <= MOST_STOPS and all(self.stop),
             f"at most {MOST_STOPS} strings, none empty"),
            ("stop_token_ids",
             len(self.stop_token_ids) <= MOST_STOP_IDS and min(self.stop_token_ids, default=0) >= 0,
             f"at most {MOST_STOP_IDS} ids of the vocabulary"),
        ]  # fmt: skip
        for name, sound, rule in ranges:
            if not sound:
                value = getattr(self, name)
                shown = list(value[:MOST_STOP_IDS]) if isinstance(value, tuple) else value
                raise RequestRefused(f"{name} is {shown}, it must be {rule}", param=name)

    def row(self, token_index: int) -> tuple[float, float, float, int, int, int]:
        """The values of the op's `SAMPLE_ROW` for the `token_index`-th generated token."""
        return (
            self.temperature if self.temperature >= COLDEST else 0.0,
            self.top_p,
            self.min_p,
            self.top_k,
            self.seed % MAX_SEED,
            token_index,
        )
