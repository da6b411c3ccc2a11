"""The sections `gateway` and `orchestrator` of the configuration."""

from __future__ import annotations

from dataclasses import dataclass

from bedplate.serving.api import DEFAULT_MODEL


@dataclass(frozen=True)
class GatewayConfig:
    """Where the gateway listens."""

    host: str = "127.0.0.1"
    port: int = 8000


@dataclass(frozen=True)
class OrchestratorConfig:
    """What the platform serves, and how long a silent process is left alone."""

    model: str = DEFAULT_MODEL
    hang_after_s: float = 10.0
