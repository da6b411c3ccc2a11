"""Chat templates: untrusted programs from model files, run in a sandbox.

Jinja2's immutable sandbox stops a template from reaching Python; it does not stop
an endless loop or a value of gigabytes. So a template runs in a child process of
its own with limited memory and a deadline. A hostile one costs one refused
request and a new child, never the server. A round trip takes under a millisecond.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from bedplate.core.legible import signal_name
from bedplate.core.python import PYTHON
from bedplate.serving.errors import RequestRefused, UnsupportedModel

DEADLINE_S = 2.0
START_DEADLINE_S = 20.0  # a new Python on a loaded machine
_CHUNK_BYTES = 1 << 16


class _Died(Exception):
    """The child ended or took too long; the text is a clause that says which."""


class _Child:
    """One running child. Not thread-safe."""

    def __init__(self, start: Mapping[str, Any]) -> None:
        self._process = subprocess.Popen(
            [*PYTHON, "-m", "bedplate.serving.template_child", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={"PATH": os.defpath, "PYTHONPATH": _places()},  # and no key
        )
        self._rest = b""
        try:
            self.first_answer = self.ask(start, START_DEADLINE_S)
        except BaseException:
            self.close()
            raise

    def ask(self, message: Mapping[str, Any], deadline_s: float) -> dict[str, str]:
        """The child's answer. Raises `_Died`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        until = time.monotonic() + deadline_s
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
        except OSError as cause:
            raise _Died(self._ending()) from cause
        with selectors.DefaultSelector() as ready:
            ready.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                left = until - time.monotonic()
                if left <= 0 or not ready.select(left):
                    raise _Died(f"did not finish within {deadline_s:g} s")
                chunk = self._process.stdout.read(_CHUNK_BYTES)
                if not chunk:
                    raise _Died(self._ending())
                self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, str] = json.loads(line)
        return answer

    @property
    def ended(self) -> bool:
        """Whether it ended while nobody asked, as when the thread that started it did."""
        return self._process.poll() is not None

    def _ending(self) -> str:
        self._process.kill()  # it closed its pipes, so it ends or has ended
        code = self._process.wait()
        how = signal_name(-code) if code < 0 else f"exit code {code}"
        return f"crashed its process ({how})"

    def close(self) -> None:
        """End the child and wait for it."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._process.wait()


def _places() -> str:
    """Where this process finds modules, without what depends on a working directory."""
    return os.pathsep.join(place for place in sys.path if os.path.isabs(place))


class ChatTemplate:
    """Turns messages into a prompt. Thread-safe; one prompt at a time."""

    def __init__(self, source: str, variables: Mapping[str, Any]) -> None:
        """Compile `source`. Raises `UnsupportedModel` when it does not compile."""
        self._start = {"source": source, "variables": dict(variables)}
        self._lock = threading.Lock()
        self._child: _Child | None = None
        with self._lock:
            self._running()

    def _running(self) -> _Child:
        if self._child is not None and self._child.ended:
            self._end()
        if self._child is None:
            try:
                child = _Child(self._start)
            except _Died as cause:
                raise UnsupportedModel(
                    f"the model's chat template does not compile: it {cause}"
                ) from cause
            if "error" in child.first_answer:
                child.close()
                raise UnsupportedModel(
                    f"the model's chat template does not compile: {child.first_answer['error']}"
                )
            self._child = child
        return self._child

    def render(
        self, messages: Sequence[Mapping[str, Any]], *, add_generation_prompt: bool = True
    ) -> str:
        """The prompt for `messages`.

        Raises `RequestRefused` when the template fails, reaches outside its
        sandbox, runs longer than `DEADLINE_S` or needs too much memory.
        """
        values = {"messages": list(messages), "add_generation_prompt": add_generation_prompt}
        with self._lock:
            try:
                answer = self._running().ask(values, DEADLINE_S)
            except _Died as cause:
                self._end()
                answer = {"error": str(cause)}
        if "error" in answer:
            raise RequestRefused(
                f"the model's chat template {answer['error']}",
                code="serving.template_error",
                param="messages",
            )
        return answer["text"]

    def _end(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    def close(self) -> None:
        """End the child; a later `render` starts a new one."""
        with self._lock:
            self._end()
