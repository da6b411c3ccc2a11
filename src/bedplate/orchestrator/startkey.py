"""The API key that a start makes: shown when the platform answers to it, forgotten when not.

Until one of the two has happened the key store is held, so another start waits
instead of living by a key that nobody will see and that may go.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from bedplate.core import keyfile, keys
from bedplate.orchestrator import record
from bedplate.orchestrator.launch import Note

_POLL_S = 0.05


@dataclass(frozen=True)
class StartKey:
    """`made` is a key to be shown; `environment` is what the platform must be given.

    With `faster`, the platform that another start brought up meanwhile, there is nothing
    left to start.
    """

    made: str | None = None
    faster: record.Record | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    forget: Callable[[], None] = lambda: None

    def in_force(self, url: str) -> str | None:
        """The key that was made, if the platform there takes it; else it is forgotten.

        A platform that another start brought up may live by a key of its environment.
        """
        if self.made is None:
            return None
        headers = {"Authorization": f"Bearer {self.made}"}
        answer = httpx.get(f"{url}/v1/models", headers=headers, timeout=10.0, trust_env=False)
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            self.forget()
            return None
        return self.made


@contextlib.contextmanager
def start_key(data: Path, keep: bool, on_note: Note) -> Iterator[StartKey]:
    """The key for a start in the block; an error of the block forgets one made for it.

    Without `keep` no key is stored. Raises what `keyfile.load_or_make` does.
    """
    if os.environ.get("BEDPLATE_API_KEY"):
        yield StartKey()
        return
    if not keep:
        keyfile.check(data)
        yield StartKey(environment={"BEDPLATE_API_KEY": keys.make()})
        return
    held = _hold(data, on_note)
    if isinstance(held, record.Record):
        yield StartKey(faster=held)
        return
    with contextlib.closing(held):
        if held.made is None:
            held.close()  # a key that was there is nobody's to forget
        try:
            yield StartKey(held.made, forget=held.forget)
        except BaseException:
            held.forget()
            raise


def _hold(data: Path, on_note: Note) -> keyfile.Held | record.Record:
    told = False
    while (held := keyfile.try_hold(data)) is None:
        if (running := record.read(data)) is not None and not running.stopping:
            return running
        if not told:
            on_note("waiting for another start, which makes the API key")
            told = True
        time.sleep(_POLL_S)
    return held
