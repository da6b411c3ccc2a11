"""What the licence in force allows (license-state/1).

Provided by licensing; read by orchestrator at placement and scale-up, never
on the request path. `current` answers from memory and does no I/O. Without a
licence the state is `valid`, edition `free`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

SCHEMA = "bedplate.license-state/1"
State = Literal["valid", "expiring", "grace", "limited", "invalid"]


@dataclass(frozen=True, slots=True)
class EntitlementSet:
    """Upper limits; None is unlimited. An empty vendor set allows any."""

    max_gpus: int | None = None
    max_nodes: int | None = None
    max_models: int | None = None
    features: frozenset[str] = frozenset()
    gpu_vendors: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Seats:
    """Use of the licensed seats."""

    kind: str
    limit: int
    used: int
    overage: int


@dataclass(frozen=True, slots=True)
class LicenseState:
    """The licence's state; times are RFC 3339, None when they do not apply."""

    state: State = "valid"
    edition: str = "free"
    reason: str = "no licence installed"
    expires_at: str | None = None
    grace_ends_at: str | None = None
    clock_suspect: bool = False
    enforcement: Literal["enforce", "advisory"] = "enforce"
    entitlements: EntitlementSet = field(default_factory=EntitlementSet)
    seats: Seats | None = None
    schema: str = SCHEMA


class Entitlements(Protocol):
    """Whoever knows the licence."""

    def current(self) -> LicenseState:
        """The state now, from memory."""
        ...
