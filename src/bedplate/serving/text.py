"""From token ids to text that may be sent: UTF-8 state and stop strings.

Two things hold text back. A character may still lack bytes, and the end of the
text may be the start of a stop string. Nothing of a stop string is ever sent,
and all text before it is.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class Detokenizer:
    """Incremental and UTF-8-safe. One for each request."""

    def __init__(self, token_bytes: Sequence[bytes]) -> None:
        self._bytes = token_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """The text that `token` completes; empty while a character lacks bytes."""
        return self._decoder.decode(self._bytes[token])

    def finish(self) -> str:
        """What is left at the end: U+FFFD for a character cut short, else nothing."""
        return self._decoder.decode(b"", True)


class StopMatcher:
    """Finds the first stop string, holding back what may become one."""

    def __init__(self, stops: Sequence[str]) -> None:
        """`stops` are non-empty strings."""
        self._stops = tuple(stops)
        self._held = ""
        self.matched: str | None = None

    def push(self, text: str) -> str:
        """Text that is safe to send. After a match `matched` is set; push no more."""
        self._held += text
        if not self._stops:
            return self._take(len(self._held))
        hits = [(at, s) for s in self._stops if (at := self._held.find(s)) >= 0]
        if hits:
            at, self.matched = min(hits, key=lambda hit: hit[0])
            safe, self._held = self._held[:at], ""
            return safe
        return self._take(len(self._held) - self._possible_start())

    def finish(self) -> str:
        """What was held back, once no more text comes."""
        return self._take(len(self._held))

    def _take(self, count: int) -> str:
        safe, self._held = self._held[:count], self._held[count:]
        return safe

    def _possible_start(self) -> int:
        """Length of the longest end of the held text that starts a stop string."""
        longest = min(len(self._held), max(len(s) for s in self._stops) - 1)
        for length in range(longest, 0, -1):
            end = self._held[-length:]
            if any(s.startswith(end) for s in self._stops):
                return length
        return 0
