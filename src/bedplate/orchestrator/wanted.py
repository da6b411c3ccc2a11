"""What a caller of `up` asked for, held against the platform that runs.

A running platform is found, never changed: what it does not fit is an error that
names both, so that nobody talks to another model or port than they asked for.
"""

from __future__ import annotations

import contextlib
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from bedplate.core.command import quoted
from bedplate.orchestrator.errors import AlreadyRunning
from bedplate.orchestrator.record import Record
from bedplate.serving.api import PACKAGED, find_model


def absolute(model: str) -> str:
    """A known name as it is, a path as an absolute one; links keep their own name."""
    return model if model in PACKAGED else os.path.abspath(os.path.expanduser(model))


@dataclass(frozen=True)
class Wanted:
    """`model` is a name or path. None: whatever runs will do, as will port 0."""

    model: str | None = None
    host: str | None = None
    port: int | None = None

    def check(self, data: Path, running: Record) -> None:
        """Raise `AlreadyRunning` when `running`, on `data`, is not what is wanted.

        Raises what `find_model` does for a model that is not there.
        """
        shown, other = running.source or running.model, ""
        if self.model is not None:
            find_model(self.model, verify=False)
            if not _same_model(absolute(self.model), shown):
                other = absolute(self.model)
        if not other and self.port and self.port != running.port:
            other = f"on port {self.port}"
        if not other and self.host and not _same_host(self.host, running):
            other = f"on {self.host}"
        if other:
            raise AlreadyRunning(
                f"{shown} runs already at {running.url}, not {other}",
                remedy=f"stop it with {quoted('down', data)} first, "
                "or give another --data-dir and --port",
            )


def _same_model(wanted: str, served: str) -> bool:
    """Whether two sources are one; links are followed, and names are not paths."""
    if wanted in PACKAGED or served in PACKAGED:
        return wanted == served
    return os.path.realpath(wanted) == os.path.realpath(served)


def _same_host(wanted: str, running: Record) -> bool:
    served = running.host or running.reachable_host
    with contextlib.suppress(OSError):
        # A name may have several addresses: localhost is 127.0.0.1 and ::1.
        one, other = ({a[4][0] for a in socket.getaddrinfo(h, None)} for h in (wanted, served))
        return bool(one & other)
    return wanted == served
