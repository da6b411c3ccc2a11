"""What other systems may import from `serving`."""

from __future__ import annotations

from bedplate.serving.access import TENANT_HEADER, Access
from bedplate.serving.config import ServingConfig
from bedplate.serving.errors import (
    AnswerLost,
    EngineStopped,
    LimitsError,
    ModelFileError,
    RequestRefused,
    SchedulerError,
    ServingError,
    UnsupportedModel,
)
from bedplate.serving.generate import Result, generate, stream
from bedplate.serving.http import (
    EventStream,
    error_response,
    json_response,
    read_body,
    unless_gone,
)
from bedplate.serving.load import (
    DEFAULT_MODEL,
    PACKAGED,
    Engine,
    EngineOptions,
    find_model,
    open_model,
)
from bedplate.serving.models.base import Precision
from bedplate.serving.process import Address, answer_until_stopped, serve
from bedplate.serving.request import FinishReason, Output, Request
from bedplate.serving.sampling import Sampling
from bedplate.serving.server import Application
from bedplate.serving.stream import error_event
from bedplate.serving.wire import MOST_CHOICES, model_card

__all__ = [
    "DEFAULT_MODEL",
    "MOST_CHOICES",
    "PACKAGED",
    "TENANT_HEADER",
    "Access",
    "Address",
    "AnswerLost",
    "Application",
    "Engine",
    "EngineOptions",
    "EngineStopped",
    "EventStream",
    "FinishReason",
    "LimitsError",
    "ModelFileError",
    "Output",
    "Precision",
    "Request",
    "RequestRefused",
    "Result",
    "Sampling",
    "SchedulerError",
    "ServingConfig",
    "ServingError",
    "UnsupportedModel",
    "answer_until_stopped",
    "error_event",
    "error_response",
    "find_model",
    "generate",
    "json_response",
    "model_card",
    "open_model",
    "read_body",
    "serve",
    "stream",
    "unless_gone",
]
