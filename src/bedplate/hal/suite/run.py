"""Drives the suite from outside: a worker process, a deadline for every case.

A case that crashes or hangs is one failed case; the next one gets a new
worker. The worker is the command line itself, because only there is the
oracle of the ops wired.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bedplate.core.legible import signal_name
from bedplate.core.python import PYTHON
from bedplate.hal import inprocess
from bedplate.hal.errors import HalError
from bedplate.hal.suite.registry import Case, Tier, all_cases

CASE_DEADLINE_S = 10.0
"""Ten times what the longest case takes on two busy cores; a hang costs this much."""

DID_NOT_END = "it did not end"
"""How the reason of a case that hung begins."""

START_DEADLINE_S = 60.0
"""For the first answer of a worker, which imports everything first."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What became of a case: pass, fail or not_run, and why."""

    name: str
    capability: str
    verdict: str
    reason: str | None


def worker_command(spec: str) -> list[str]:
    """The command line that runs cases of a device named by stdin, with our machines."""
    entry = "from bedplate.cli.main import entry; entry()"
    providers = [part for origin in inprocess.origins() for part in ("--provider", origin)]
    return [*PYTHON, "-c", entry, "hal", "conform", spec, "--worker", *providers]


class Worker:
    """A child that answers one case at a time."""

    def __init__(self, command: Sequence[str], deadline_s: float) -> None:
        self._deadline_s = deadline_s
        # Closed in stop(): a worker lives longer than any block.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
        )
        self._answered = False
        self._lost = False
        self._said = b""

    def ask(self, name: str) -> tuple[str, str | None]:
        """Verdict and reason of a case. Raises HalError when no worker can be started."""
        stdin = self._child.stdin
        assert stdin is not None
        try:
            stdin.write(name.encode() + b"\n")
            stdin.flush()
        except BrokenPipeError:
            return self._ended()
        deadline_s = self._deadline_s if self._answered else START_DEADLINE_S + self._deadline_s
        line = self._line(time.monotonic() + deadline_s)
        if line is None:
            return "fail", f"{DID_NOT_END} within {self._deadline_s:g} s"
        if not line:
            return self._ended()
        self._answered = True
        answer = json.loads(line)
        self._lost = bool(answer.get("lost"))
        return answer["verdict"], answer["reason"]

    def _line(self, deadline: float) -> bytes | None:
        """A whole line of the child; empty at its end, None at the deadline, also inside a line."""
        stdout = self._child.stdout
        assert stdout is not None
        with selectors.DefaultSelector() as ready:
            ready.register(stdout, selectors.EVENT_READ)
            while b"\n" not in self._said:
                if not ready.select(max(deadline - time.monotonic(), 0)):
                    return None
                more = os.read(stdout.fileno(), 65_536)
                if not more:
                    return b""
                self._said += more
        line, _, self._said = self._said.partition(b"\n")
        return line

    def alive(self) -> bool:
        """Whether it can answer another case."""
        return self._answered and not self._lost and self._child.poll() is None

    def stop(self) -> None:
        """End it, however busy."""
        self._child.kill()
        self._child.wait()
        for stream in (self._child.stdin, self._child.stdout, self._errors):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def _ended(self) -> tuple[str, str | None]:
        code = self._child.wait()
        if code < 0:
            return "fail", f"it died of {signal_name(-code)}"
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()
        raise HalError(
            f"the conformance worker ended with {code}: {said[-1] if said else 'no words'}",
            code="hal.worker",
        )


def select(claims: frozenset[str], tier: Tier) -> list[Case]:
    """The cases that a device with these claims must face in a tier."""
    cases = [case for case in all_cases().values() if case.applies(claims)]
    return [case for case in cases if case.tier == "quick"] if tier == "quick" else cases


def run(
    cases: Sequence[Case],
    command: Sequence[str],
    *,
    deadline_s: float = CASE_DEADLINE_S,
    progress: Callable[[CaseResult], object] | None = None,
    most_hangs: int | None = None,
) -> list[CaseResult]:
    """Run cases one after the other; each has a result.

    After `most_hangs` cases that did not end the others are NOT RUN: someone
    waits, and a device that hangs in everything would take an hour.
    """
    results = []
    for result in _results(cases, command, deadline_s, most_hangs):
        results.append(result)
        if progress is not None:
            progress(result)
    return results


def _results(
    cases: Sequence[Case], command: Sequence[str], deadline_s: float, most_hangs: int | None
) -> Iterator[CaseResult]:
    worker: Worker | None = None
    hangs = 0
    try:
        for case in cases:
            if hangs == most_hangs:
                unasked = f"{hangs} cases before did not end"
                yield CaseResult(case.name, case.capability, "not_run", unasked)
                continue
            if worker is None:
                worker = Worker(command, deadline_s)
            verdict, reason = worker.ask(case.name)
            hung = (reason or "").startswith(DID_NOT_END)
            hangs += hung
            yield CaseResult(case.name, case.capability, verdict, reason)
            # After a hang or a crash nothing of that process is believed.
            if not worker.alive() or hung:
                worker.stop()
                worker = None
    finally:
        if worker is not None:
            worker.stop()
