"""A prompt that is scored: its logits at every position, put together from steps."""

from __future__ import annotations

from collections.abc import Sequence
from queue import SimpleQueue

import numpy as np
from numpy.typing import NDArray


class Scoring:
    """Collects the logits of one prompt, float32 [tokens, vocabulary].

    `done` gets one item: None, or why the engine ended first.
    """

    def __init__(self, prompt: Sequence[int]) -> None:
        self.prompt = prompt
        self.logits: NDArray[np.float32] | None = None
        self.missing = np.ones(len(prompt), bool)
        self.done: SimpleQueue[str | None] = SimpleQueue()

    def take(self, positions: NDArray[np.int32], rows: NDArray[np.float32]) -> bool:
        """Keep rows by position, since a preempted prompt comes twice; whether all are there."""
        if self.logits is None:
            self.logits = np.empty((len(self.prompt), rows.shape[1]), np.float32)
        self.logits[positions] = rows
        self.missing[positions] = False
        return not self.missing.any()
