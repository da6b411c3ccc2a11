"""What other systems may import from `orchestrator`.

A name's module is loaded when the name is first used: the supervisor lives as long
as the platform and must not carry what only gateways and engines need.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bedplate.orchestrator.child import Patience
    from bedplate.orchestrator.client import Reply, ask
    from bedplate.orchestrator.config import GatewayConfig, OrchestratorConfig
    from bedplate.orchestrator.doctor.examine import examine
    from bedplate.orchestrator.doctor.finding import Finding, Verdict
    from bedplate.orchestrator.errors import (
        AlreadyRunning,
        GatewayError,
        NotRunning,
        OrchestratorError,
        StartFailed,
        StopFailed,
    )
    from bedplate.orchestrator.gateway.process import run_gateway
    from bedplate.orchestrator.load import EngineLoad
    from bedplate.orchestrator.platform import Platform
    from bedplate.orchestrator.supervisor import Plan, run_supervisor

__all__ = [
    "AlreadyRunning",
    "EngineLoad",
    "Finding",
    "GatewayConfig",
    "GatewayError",
    "NotRunning",
    "OrchestratorConfig",
    "OrchestratorError",
    "Patience",
    "Plan",
    "Platform",
    "Reply",
    "StartFailed",
    "StopFailed",
    "Verdict",
    "ask",
    "examine",
    "run_gateway",
    "run_supervisor",
]

_MODULES = {
    "child": ("Patience",),
    "client": ("Reply", "ask"),
    "config": ("GatewayConfig", "OrchestratorConfig"),
    "doctor.examine": ("examine",),
    "doctor.finding": ("Finding", "Verdict"),
    "errors": (
        "AlreadyRunning",
        "GatewayError",
        "NotRunning",
        "OrchestratorError",
        "StartFailed",
        "StopFailed",
    ),
    "gateway.process": ("run_gateway",),
    "load": ("EngineLoad",),
    "platform": ("Platform",),
    "supervisor": ("Plan", "run_supervisor"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"bedplate.orchestrator.{_HOMES[name]}"), name)
