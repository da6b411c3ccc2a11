"""The root of every error that Bedplate raises on purpose.

::

    BedplateError                 exit 1
    ├── UsageError                exit 2   a flag, a file or a value is wrong
    │   └── ConfigurationError    exit 2   the configuration is wrong
    ├── EnvironmentLacks          exit 3   the machine lacks something
    └── <System>Error             each system's own `errors.py`

An error carries two texts: `message`, one sentence for the user with the
offending value in it, and `detail`, for the log. `remedy` says what to do.
A system's error is a subclass of the root and may also inherit from
`UsageError` or `EnvironmentLacks` to take its exit code.
"""

from __future__ import annotations

from typing import Any, ClassVar

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_ENVIRONMENT = 3


class BedplateError(Exception):
    """An error with one sentence for the user, and a remedy.

    `code` is `<system>.<condition>`, for example `hal.invalid_argument`; a
    subclass gives its own default. `message` has no full stop at its end.
    `detail` is for the log only and may name paths, native codes or causes.
    """

    code: ClassVar[str] = "core.internal"
    exit_code: ClassVar[int] = EXIT_FAILED

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        remedy: str | None = None,
        detail: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.detail = detail
        if code is not None:
            # An instance may be more exact than its class.
            self.__dict__["code"] = code

    def __str__(self) -> str:
        if self.remedy is None:
            return self.message
        return f"{self.message}; {self.remedy}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep every field when the error crosses a process boundary."""
        return (_rebuild, (type(self), self.args, dict(self.__dict__)))

    @property
    def condition(self) -> str:
        """The part of the code after the system's name."""
        return self.code.partition(".")[2] or self.code


class UsageError(BedplateError):
    """The caller gave a wrong flag, file or value."""

    code = "core.usage"
    exit_code = EXIT_USAGE


class ConfigurationError(UsageError):
    """The configuration file, environment or flags hold a wrong value."""

    code = "core.configuration"


class EnvironmentLacks(BedplateError):
    """The machine lacks something that the command needs."""

    code = "core.environment_lacks"
    exit_code = EXIT_ENVIRONMENT


def _rebuild(kind: type[BedplateError], args: tuple[Any, ...], state: dict[str, Any]) -> Any:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error
