"""One round of the kill: streams run, the engine is killed, everything must come back.

`Round.run` starts the streams through the unmodified openai client, sends SIGKILL to
the engine once each has a piece of its answer, and waits until the platform answers
again. What it saw is for its caller to judge; `Footprint` is what must be the same
before and after.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import astuple, dataclass, field

import httpx
import openai
import psutil

from bedplate.orchestrator.api import Platform

STREAMS = 16
PATIENCE_S = 60.0
_PROMPT = [{"role": "user", "content": "Write a long story about a ship."}]


@dataclass(frozen=True)
class Footprint:
    """What a platform holds while idle: nothing of it may grow from round to round."""

    processes: int
    supervisor_descriptors: int
    gateway_descriptors: int
    gateway_sockets: int
    blocks_used: int
    requests: int

    @classmethod
    def at_rest(cls, plate: Platform, readings: int = 10) -> Footprint:
        """The least of each over some readings: a probe that runs meanwhile holds more."""
        seen = [astuple(cls.of(plate)) for _ in range(readings)]
        return cls(*(min(values) for values in zip(*seen, strict=True)))

    @classmethod
    def of(cls, plate: Platform) -> Footprint:
        """What it holds now; zombies count as processes."""
        gateway = part(plate, "gateway")
        supervisor = gateway.parent()
        assert supervisor is not None
        figures = metrics(plate)
        return cls(
            processes=len(supervisor.children(recursive=True)),
            supervisor_descriptors=supervisor.num_fds(),
            gateway_descriptors=gateway.num_fds(),
            gateway_sockets=len(gateway.net_connections("all")),
            blocks_used=int(figures["bedplate_engine_kv_blocks/used"]),
            requests=int(figures["bedplate_engine_running"] + figures["bedplate_engine_waiting"]),
        )


@dataclass
class Outcome:
    """What one round saw. `errors` has one entry a stream, None for one without an error."""

    recovery_ns: int = 0
    pieces: list[int] = field(default_factory=list)
    errors: list[Exception | None] = field(default_factory=list)
    health_statuses: set[int] = field(default_factory=set)


def part(plate: Platform, name: str) -> psutil.Process:
    """The process of one part of the platform."""
    (found,) = [child for child in plate.status()["children"] if child["name"] == name]
    return psutil.Process(found["pid"])


def metrics(plate: Platform) -> dict[str, float]:
    """The gauges of `/metrics` by name, and `<name>/<state>` where there is a state."""
    headers = {"Authorization": f"Bearer {plate.internal_key}"}
    text = httpx.get(f"{plate.url}/metrics", headers=headers, trust_env=False, timeout=10).text
    found = {}
    for line in text.splitlines():
        if line.startswith("bedplate_engine_"):
            name, _, value = line.rpartition(" ")
            base, _, labels = name.partition("{")
            state = labels.partition('state="')[2].partition('"')[0]
            found[f"{base}/{state}" if state else base] = float(value)
    return found


class Round:
    """Streams through one platform, and the kill of its engine."""

    def __init__(self, plate: Platform, streams: int = STREAMS) -> None:
        self._plate, self._streams = plate, streams
        self._key = plate.internal_key
        self._recovered = threading.Event()

    def run(self) -> Outcome:
        """Kill the engine in the middle of all streams, and wait for the next answer."""
        outcome = Outcome(pieces=[0] * self._streams, errors=[None] * self._streams)
        streams = [
            threading.Thread(target=self._stream, args=(i, outcome)) for i in range(self._streams)
        ]
        watcher = threading.Thread(target=self._watch_health, args=(outcome,))
        for thread in (*streams, watcher):
            thread.start()
        try:
            self._wait_for_pieces(outcome)
            os.kill(part(self._plate, "engine").pid, signal.SIGKILL)
            killed_ns = time.monotonic_ns()
            self._wait_for_answer()
            outcome.recovery_ns = time.monotonic_ns() - killed_ns
        finally:
            self._recovered.set()
            for thread in (*streams, watcher):
                thread.join()
        return outcome

    def _client(self) -> openai.OpenAI:
        return openai.OpenAI(
            base_url=self._plate.base_url, api_key=self._key, max_retries=0, timeout=PATIENCE_S
        )

    def _stream(self, number: int, outcome: Outcome) -> None:
        try:
            with self._client() as api:
                for chunk in api.chat.completions.create(
                    model=self._plate.model,
                    messages=_PROMPT,
                    stream=True,
                    extra_body={"ignore_eos": True},
                ):
                    outcome.pieces[number] += bool(chunk.choices[0].delta.content)
        except Exception as error:
            outcome.errors[number] = error

    def _wait_for_pieces(self, outcome: Outcome) -> None:
        until = time.monotonic() + PATIENCE_S
        while not all(outcome.pieces):
            if time.monotonic() > until or any(outcome.errors):
                raise RuntimeError(f"not every stream began: {outcome}")
            time.sleep(0.01)

    def _wait_for_answer(self) -> None:
        until = time.monotonic() + PATIENCE_S
        with self._client() as api:
            while True:
                try:
                    api.chat.completions.create(
                        model=self._plate.model, messages=_PROMPT, max_tokens=1
                    )
                    return
                except openai.APIStatusError as error:
                    if error.status_code != 503 or time.monotonic() > until:
                        raise
                time.sleep(0.02)

    def _watch_health(self, outcome: Outcome) -> None:
        with httpx.Client(trust_env=False, timeout=PATIENCE_S) as client:
            while not self._recovered.is_set():
                outcome.health_statuses.add(client.get(f"{self._plate.url}/health").status_code)
                time.sleep(0.02)
