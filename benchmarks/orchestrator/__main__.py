"""How fast the platform is up and back, and what it holds while it does nothing.

    python -m benchmarks.orchestrator --out results.json [--quick]

`start` is from `Platform.up` to a platform that answers, `first_token` from there to
the first token of a first prompt. `recovery` is from the SIGKILL of an engine that
serves 16 streams to the first answer of the next; every round also checks that each
stream ended with the error event, that the gateway answered all the time, and that
nothing leaked: a round that fails ends the run. `idle_memory` is what the supervisor
and the gateway hold together, as proportional set size.

There is no peer on this machine that restarts an engine behind a gateway.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import openai
from benchmarks.orchestrator.kill import STREAMS, Footprint, Outcome, Round, part
from benchmarks.trial import begin

from bedplate import __version__
from bedplate.core.samples import summarise
from bedplate.orchestrator.api import Platform, ask

SETTLE_S = 20.0
GOALS = {"recovery": 5.0, "first_token": 20.0, "idle_memory": 180e6}
UNITS = {"start": "s", "first_token": "s", "recovery": "s", "idle_memory": "bytes"}


def proportional_bytes(pid: int) -> int:
    """Memory of a process, shared pages divided among their users; proc(5), smaps_rollup."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {pid} has no Pss")


def start_round(values: dict[str, list[float]]) -> None:
    """Start a platform, ask it once, weigh it, stop it."""
    with tempfile.TemporaryDirectory(prefix="bedplate-") as folder:
        begun_ns = time.monotonic_ns()
        with Platform.up(data_dir=folder, port=0) as plate:
            ready_ns = time.monotonic_ns()
            prompt = [{"role": "user", "content": "Name three seas."}]
            reply = ask(plate.url, plate.internal_key, plate.model, prompt, max_tokens=8)
            gateway = part(plate, "gateway")
            supervisor = gateway.ppid()
            values["start"].append((ready_ns - begun_ns) / 1e9)
            until_token_ns = ready_ns - begun_ns + reply.time_to_first_token_ns
            values["first_token"].append(until_token_ns / 1e9)
            held = proportional_bytes(gateway.pid) + proportional_bytes(supervisor)
            values["idle_memory"].append(float(held))


def kill_rounds(values: dict[str, list[float]], count: int) -> None:
    """Kill one platform's engine `count` times; raises `RuntimeError` when anything is wrong."""
    with (
        tempfile.TemporaryDirectory(prefix="bedplate-") as folder,
        Platform.up(data_dir=folder, port=0) as plate,
    ):
        before = Footprint.at_rest(plate)
        for number in range(count):
            outcome = Round(plate).run()
            check(outcome, number)
            settle(plate, before, number)
            values["recovery"].append(outcome.recovery_ns / 1e9)
            print(f"kill {number + 1}: {outcome.recovery_ns / 1e9:.2f} s", flush=True)


def check(outcome: Outcome, number: int) -> None:
    """Every stream had text and ended with the error event, the gateway was always well."""
    clean = all(
        isinstance(error, openai.APIError) and error.code == "engine_lost"
        for error in outcome.errors
    )
    if not (clean and all(outcome.pieces) and outcome.health_statuses == {200}):
        raise RuntimeError(f"round {number}: {outcome}")


def settle(plate: Platform, before: Footprint, number: int) -> None:
    """Wait until the platform holds what it held before."""
    until = time.monotonic() + SETTLE_S
    while (now := Footprint.of(plate)) != before:
        if time.monotonic() > until:
            raise RuntimeError(f"round {number} left something: {before} became {now}")
        time.sleep(0.1)


def main() -> int:
    """Measure, print and store; 1 when a goal is missed, by its worst round; 3 when NOT RUN."""
    trial = begin("orchestrator", __doc__, better="lower", versions={"bedplate": __version__})
    values: dict[str, list[float]] = {name: [] for name in UNITS}
    for _ in range(trial.rounds(7, 2)):
        start_round(values)
    kill_rounds(values, trial.rounds(20, 2))
    missed = []
    for name, unit in UNITS.items():
        conditions: dict[str, Any] = {"model": "smollm2"}
        quality: dict[str, Any] = {}
        if name == "recovery":
            conditions["streams"] = STREAMS
            quality = {"streams_ended_cleanly": 1.0, "leaks": 0, "slowest": max(values[name])}
        record = trial.add(
            summarise(values[name]),
            rounds=len(values[name]),
            name=name,
            unit=unit,
            conditions=conditions,
            quality=quality,
            goal=GOALS.get(name),
        )
        worst = max(values[name])
        print(f"{name:<12}{record.p50:>14.6g} {unit}, worst {worst:.6g}")
        if name in GOALS and worst > GOALS[name]:
            missed.append(name)
    trial.finish()
    print(f"missed in some round: {', '.join(missed)}" if missed else "no round missed a goal")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
