"""What goes wrong in the platform.

::

    OrchestratorError               exit 1
    ├── NotRunning                  exit 3   no platform runs on this data directory
    ├── StartFailed                 exit 1   a part of the platform did not come up
    └── GatewayError                exit 1   the gateway answered with an error
"""

from __future__ import annotations

from bedplate.core.errors import BedplateError, EnvironmentLacks


class OrchestratorError(BedplateError):
    """Root of this system's errors."""

    code = "orchestrator.internal"


class NotRunning(OrchestratorError, EnvironmentLacks):
    """No platform runs on this data directory."""

    code = "orchestrator.not_running"


class StartFailed(OrchestratorError):
    """The platform did not come up; the message holds the part's last words."""

    code = "orchestrator.start_failed"


class GatewayError(OrchestratorError):
    """A request through the gateway failed."""

    code = "orchestrator.gateway"
