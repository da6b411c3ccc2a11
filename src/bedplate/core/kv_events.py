"""What an engine still holds in its prefix cache (kv-event/1).

Called by serving, provided by the router. `seq` counts up within an `epoch`,
which an engine changes when it starts; a gap or a new epoch makes the router
forget what it believed of that engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

SCHEMA = "bedplate.kv-event/1"


@dataclass(frozen=True, slots=True)
class KvEvent:
    """Prefix blocks that came or went.

    `routes` are opaque prefix hashes salted by tenant; `tokens` is how many
    tokens each stands for. `cleared` has no routes and means all of them.
    """

    engine: str
    epoch: int
    seq: int
    time_ns: int
    kind: Literal["stored", "removed", "cleared"]
    routes: Sequence[str]
    tokens: int
    schema: str = SCHEMA


class KvEventSink(Protocol):
    """Whoever routes by prefix."""

    def publish(self, event: KvEvent) -> None:
        """Hand over one event; never blocks, may drop (the gap shows it)."""
        ...
