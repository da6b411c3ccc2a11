"""What goes wrong in the platform.

::

    OrchestratorError               exit 1
    ├── NotRunning                  exit 3   no platform runs on this data directory
    ├── AlreadyRunning              exit 2   another one does, and serves something else
    ├── StartFailed                 exit 1   a part of the platform did not come up
    │   ├── StartRefused            exit 2   because of a flag or a model that it was given
    │   └── StartLacks              exit 3   because the machine lacks something
    ├── StopFailed                  exit 1   a part of the platform did not end
    └── GatewayError                exit 1   the gateway answered with an error
        └── QuestionRefused         exit 2   because of what it was asked
"""

from __future__ import annotations

from bedplate.core.errors import BedplateError, EnvironmentLacks, UsageError


class OrchestratorError(BedplateError):
    """Root of this system's errors."""

    code = "orchestrator.internal"


class NotRunning(OrchestratorError, EnvironmentLacks):
    """No platform runs on this data directory."""

    code = "orchestrator.not_running"


class AlreadyRunning(OrchestratorError, UsageError):
    """Another platform runs on this data directory."""

    code = "orchestrator.already_running"


class StartFailed(OrchestratorError):
    """The platform did not come up; the message holds the part's last words."""

    code = "orchestrator.start_failed"


class StartRefused(StartFailed, UsageError):
    """A part refused what it was given: a flag, a configuration or a model file."""

    code = "orchestrator.start_refused"


class StartLacks(StartFailed, EnvironmentLacks):
    """A part found that the machine lacks something."""

    code = "orchestrator.start_lacks"


class StopFailed(OrchestratorError):
    """A process of the platform did not end in time."""

    code = "orchestrator.stop_failed"


class GatewayError(OrchestratorError):
    """A request through the gateway failed."""

    code = "orchestrator.gateway"


class QuestionRefused(GatewayError, UsageError):
    """The server refused the request itself: a value, or a prompt that is too long."""

    code = "orchestrator.question"
