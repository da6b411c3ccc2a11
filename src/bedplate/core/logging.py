"""Logs on stderr: `time level system event key=value`, or one JSON object.

    log = get_logger("serving")
    log.info("request_finished", tokens=12, trace_id=context.trace_id)

An event is a snake_case word that tests and dashboards can rely on; what
changes goes into fields. Prompts, keys and hashes of keys are never logged.
`configure` is called once by a program's entry; libraries only get loggers.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

from bedplate.core.errors import ConfigurationError

ROOT = "bedplate"
LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")


class Logger:
    """Logs events of one system."""

    def __init__(self, system: str) -> None:
        self._logger = logging.getLogger(f"{ROOT}.{system}")

    def debug(self, event: str, message: str = "", **fields: Any) -> None:
        """What only someone who looks for a fault wants to read."""
        self._log(logging.DEBUG, event, message, fields)

    def info(self, event: str, message: str = "", **fields: Any) -> None:
        """What an operator wants to find later."""
        self._log(logging.INFO, event, message, fields)

    def warning(self, event: str, message: str = "", **fields: Any) -> None:
        """What works but should not stay so."""
        self._log(logging.WARNING, event, message, fields)

    def error(self, event: str, message: str = "", **fields: Any) -> None:
        """What did not work."""
        self._log(logging.ERROR, event, message, fields)

    def exception(self, event: str, message: str = "", **fields: Any) -> None:
        """`error` with the traceback of the exception being handled."""
        self._log(logging.ERROR, event, message, fields, exc_info=True)

    def _log(
        self,
        level: int,
        event: str,
        message: str,
        fields: Mapping[str, Any],
        exc_info: bool = False,
    ) -> None:
        if self._logger.isEnabledFor(level):
            extra = {"event": event, "fields": dict(fields)}
            self._logger.log(level, message, extra=extra, exc_info=exc_info)


def get_logger(system: str) -> Logger:
    """The logger of a system, for example `serving` or `hal.loader`."""
    return Logger(system)


def configure(
    level: str | None = None, format: str | None = None, stream: TextIO | None = None
) -> None:
    """Send logs to `stream` (stderr), replacing what an earlier call set up.

    Without arguments `BEDPLATE_LOG` and `BEDPLATE_LOG_FORMAT` decide, then
    `info` and `text`. Raises `ConfigurationError` for other words.
    """
    level = _one_of(level or os.environ.get("BEDPLATE_LOG", "info"), LEVELS, "BEDPLATE_LOG")
    format = _one_of(
        format or os.environ.get("BEDPLATE_LOG_FORMAT", "text"), FORMATS, "BEDPLATE_LOG_FORMAT"
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if format == "json" else TextFormatter())
    logger = logging.getLogger(ROOT)
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False


class TextFormatter(logging.Formatter):
    """One line a record, values quoted only where a space or quote asks it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of one record; a traceback follows on its own lines."""
        parts = [_time(record), record.levelname.lower(), _system(record), _event(record)]
        if message := record.getMessage():
            parts.append(f"message={_text(message)}")
        parts += [f"{name}={_text(value)}" for name, value in _fields(record).items()]
        line = " ".join(parts)
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object a line, with the fields of the contract first."""

    def format(self, record: logging.LogRecord) -> str:
        """The JSON of one record."""
        entry: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "system": _system(record),
            "event": _event(record),
            "message": record.getMessage(),
        }
        entry.update(_fields(record))
        entry.setdefault("trace_id", None)
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str, ensure_ascii=False)


def _one_of(word: str, allowed: tuple[str, ...], variable: str) -> str:
    if word.lower() not in allowed:
        raise ConfigurationError(
            f"{variable} is {word!r}", remedy=f"use one of {', '.join(allowed)}"
        )
    return word.lower()


def _time(record: logging.LogRecord) -> str:
    second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{second}.{int(record.msecs):03d}Z"


def _system(record: logging.LogRecord) -> str:
    return record.name.removeprefix(f"{ROOT}.")


def _event(record: logging.LogRecord) -> str:
    # A record of another library has no event; its logger's name tells enough.
    return str(getattr(record, "event", "message"))


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields: dict[str, Any] = getattr(record, "fields", {})
    return fields


def _text(value: Any) -> str:
    text = str(value)
    if not text or any(c.isspace() or c in '"=' for c in text):
        return json.dumps(text, ensure_ascii=False)
    return text
