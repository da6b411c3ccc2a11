"""What other systems may import from `serving`.

A name's module is loaded when the name is first used: commands and the gateway need
the protocol, not numpy, the device and the model code of an engine.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from bedplate.serving.load import Engine, EngineOptions, open_model
    from bedplate.serving.models.base import Precision
    from bedplate.serving.packaged import DEFAULT_MODEL, PACKAGED, find_model
    from bedplate.serving.process import Address, answer_until_stopped, serve
    from bedplate.serving.request import FinishReason, Output, Request
    from bedplate.serving.sampling import Sampling
    from bedplate.serving.server import Application
    from bedplate.serving.steady import SteadyState
    from bedplate.serving.wire import MOST_CHOICES, error_event, model_card

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
    "SteadyState",
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

_MODULES = {
    "access": (
        "TENANT_HEADER",
        "Access",
    ),
    "config": ("ServingConfig",),
    "errors": (
        "AnswerLost",
        "EngineStopped",
        "LimitsError",
        "ModelFileError",
        "RequestRefused",
        "SchedulerError",
        "ServingError",
        "UnsupportedModel",
    ),
    "generate": (
        "Result",
        "generate",
        "stream",
    ),
    "http": (
        "EventStream",
        "error_response",
        "json_response",
        "read_body",
        "unless_gone",
    ),
    "load": (
        "Engine",
        "EngineOptions",
        "open_model",
    ),
    "models.base": ("Precision",),
    "packaged": (
        "DEFAULT_MODEL",
        "PACKAGED",
        "find_model",
    ),
    "process": (
        "Address",
        "answer_until_stopped",
        "serve",
    ),
    "request": (
        "FinishReason",
        "Output",
        "Request",
    ),
    "sampling": ("Sampling",),
    "server": ("Application",),
    "steady": ("SteadyState",),
    "wire": (
        "MOST_CHOICES",
        "error_event",
        "model_card",
    ),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"bedplate.serving.{_HOMES[name]}"), name)
