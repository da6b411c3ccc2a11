"""W3C trace context: the ids that join a request's records across processes.

A client's own `traceparent` is only logged; the gateway starts a new trace and
answers its id as `X-Request-Id`.

Source: W3C Trace Context, section 3.2 (traceparent header).
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


@dataclass(frozen=True, slots=True)
class TraceContext:
    """One hop of a trace: 32 hex digits of trace id, 16 of span id."""

    trace_id: str
    span_id: str
    sampled: bool = True

    @classmethod
    def start(cls) -> TraceContext:
        """A new trace with random ids, neither of them all zero."""
        return cls(_random_hex(16), _random_hex(8))

    @classmethod
    def parse(cls, header: str | None) -> TraceContext | None:
        """The context of a `traceparent` header, or None when it is malformed."""
        match = _TRACEPARENT.fullmatch(header or "")
        if match is None or not int(match[1], 16) or not int(match[2], 16):
            return None
        return cls(match[1], match[2], bool(int(match[3], 16) & 1))

    def child(self) -> TraceContext:
        """The next hop of the same trace."""
        return TraceContext(self.trace_id, _random_hex(8), self.sampled)

    def header(self) -> str:
        """The value of the `traceparent` header."""
        return f"00-{self.trace_id}-{self.span_id}-{int(self.sampled):02x}"


def _random_hex(count_bytes: int) -> str:
    while not int(text := secrets.token_hex(count_bytes), 16):
        pass
    return text
