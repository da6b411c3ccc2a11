"""What other systems may import from `orchestrator`."""

from __future__ import annotations

from bedplate.orchestrator.client import Reply, ask
from bedplate.orchestrator.config import GatewayConfig, OrchestratorConfig
from bedplate.orchestrator.errors import GatewayError, NotRunning, OrchestratorError, StartFailed
from bedplate.orchestrator.gateway.process import run_gateway
from bedplate.orchestrator.platform import Platform
from bedplate.orchestrator.supervisor import Plan, run_supervisor

__all__ = [
    "GatewayConfig",
    "GatewayError",
    "NotRunning",
    "OrchestratorConfig",
    "OrchestratorError",
    "Plan",
    "Platform",
    "Reply",
    "StartFailed",
    "ask",
    "run_gateway",
    "run_supervisor",
]
