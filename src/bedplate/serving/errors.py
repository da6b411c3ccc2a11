"""What goes wrong in serving.

::

    ServingError                    exit 1
    ├── ModelFileError              exit 2   the file is damaged or not what it says
    ├── UnsupportedModel            exit 2   a sound file of a kind that is not served
    ├── LimitsError                 exit 2   the limits asked for do not fit
    ├── RequestRefused              a request that cannot be served (HTTP 4xx)
    ├── EngineStopped               the engine ended or lost its device (HTTP 503)
    ├── AnswerLost                  one answer cannot be finished; the engine goes on (HTTP 500)
    └── SchedulerError              the native core refused an event: a bug of ours
"""

from __future__ import annotations

from bedplate.core.errors import BedplateError, UsageError


class ServingError(BedplateError):
    """Root of this system's errors."""

    code = "serving.internal"


class ModelFileError(ServingError, UsageError):
    """A model file is missing, truncated, or contradicts itself."""

    code = "serving.model_file"


class UnsupportedModel(ServingError, UsageError):
    """The file is sound, but its architecture, tokenizer or type is not served."""

    code = "serving.unsupported_model"


class LimitsError(ServingError, UsageError):
    """Pool, context and batch limits that cannot hold together."""

    code = "serving.limits"


class RequestRefused(ServingError):
    """One request that is refused; the engine goes on.

    `param` names the field at fault, `status` is the HTTP status to answer with.
    """

    code = "serving.invalid_request"

    def __init__(
        self,
        message: str,
        *,
        code: str = "serving.invalid_request",
        param: str | None = None,
        status: int = 400,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message, code=code, remedy=remedy)
        self.param = param
        self.status = status


class EngineStopped(ServingError):
    """The engine no longer runs steps."""

    code = "serving.engine_stopped"


class AnswerLost(ServingError):
    """One answer cannot be finished: its logits hold NaN, or nobody reads it."""

    code = "serving.answer_lost"


class SchedulerError(ServingError):
    """The native scheduler refused a call; `status` is its negative code."""

    code = "serving.scheduler"

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message, detail=f"status {status}")
        self.status = status
