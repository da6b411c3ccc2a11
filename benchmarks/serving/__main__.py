"""Serving beside llama.cpp: decode at batch 1, 8 and 32, and a prompt of 512 tokens.

    python -m benchmarks.serving --out FILE [--quick]

llama.cpp runs every format of the same model and is compared at its best one for
each column. Both sides hold the machine's two cores in turn, never together, in
random order within each round. Beside each number stands the check that makes it
honest: the logits' error against transformers, and the agreement of best tokens.

The peer is llama-cpp-python in this environment, or in the Python that
BEDPLATE_PEER_PYTHON names; without it, NOT RUN.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.serving import ours
from benchmarks.serving.peer import Peer, PeerMissing
from benchmarks.serving.quality import measure_quality
from benchmarks.trial import Trial, begin

from bedplate.core.measurement import Measurement
from bedplate.core.samples import interleave, summarise
from bedplate.core.seeds import streams
from bedplate.serving.api import find_model

FORMATS = ("Q4_0", "Q4_1", "Q8_0", "BF16")
CONTEXT, STEPS, PROMPT = 128, 32, 512
QUALITY_ROWS = 128  # logits rows a step, where quality is measured


@dataclass(frozen=True)
class Column:
    """One row of the table: what is measured, and the ratio that it is to reach."""

    name: str
    batch: int
    is_prefill: bool
    goal: float


COLUMNS = (
    Column("decode_batch_1", 1, False, 0.5),
    Column("decode_batch_8", 8, False, 1.0),
    Column("decode_batch_32", 32, False, 1.0),
    Column("prefill_512", 1, True, 0.7),
)


def main() -> int:
    """Measure every column, print the table, store the records; the exit code."""
    trial = begin("serving", (__doc__ or "").splitlines()[0], seed=20261130, better="higher")
    rounds = trial.rounds(10, 3)
    try:
        with tempfile.TemporaryDirectory() as folder:
            paths = quantised_models(Path(folder))
            with ours.load(QUALITY_ROWS, 512) as engine:
                quality = measure_quality(engine)
            for column in COLUMNS:
                print(f"measuring {column.name}", file=sys.stderr, flush=True)
                measure(trial, column, paths, quality, rounds=rounds)
    except PeerMissing as missing:
        print(f"NOT RUN: {missing}")
        return 3
    trial.finish()
    print_table(trial.records)
    return 0


def quantised_models(folder: Path) -> dict[str, str]:
    """The model in each format: as it is, and as llama.cpp itself requantises it."""
    source = str(find_model("smollm2"))
    paths = {"Q4_1": source}
    with Peer() as peer:
        for kind in FORMATS:
            if kind not in paths:
                target = str(folder / f"{kind}.gguf")
                peer.ask(do="quantize", source=source, target=target, kind=kind)
                paths[kind] = target
    return paths


def best_format(column: Column, paths: dict[str, str]) -> str:
    """The format in which llama.cpp is fastest, by the best of three runs each."""
    speeds = {}
    for kind, path in paths.items():
        with Peer() as peer:
            peer.load(path, column.batch, 1024)
            speeds[kind] = max(peer_speed(peer, column, seed) for seed in range(4))
    return max(speeds, key=lambda kind: speeds[kind])


def peer_speed(peer: Peer, column: Column, seed: int) -> float:
    """llama.cpp's tokens a second."""
    if column.is_prefill:
        answer = peer.ask(do="prefill", tokens=PROMPT, seed=seed)
    else:
        answer = peer.ask(do="decode", context=CONTEXT, steps=STEPS, seed=seed)
    return float(answer["tokens"] * 1e9 / answer["elapsed_ns"])


def measure(
    trial: Trial, column: Column, paths: dict[str, str], quality: dict[str, Any], *, rounds: int
) -> None:
    """One column, interleaved with the peer's best format."""
    assert trial.seed is not None
    seed = trial.seed
    kind = best_format(column, paths)
    (draws,) = streams(seed, 1)
    loads: list[float] = []
    with Peer() as peer, ours.load(column.batch, 1024) as engine:
        version = peer.load(paths[kind], column.batch, 1024)

        def own() -> float:
            loads.append(os.getloadavg()[0])
            draw = int(draws.integers(1 << 31))
            if column.is_prefill:
                return ours.prefill(engine, tokens=PROMPT, seed=draw)
            return ours.decode(engine, batch=column.batch, context=CONTEXT, steps=STEPS, seed=draw)

        values: list[float] = []

        def kept() -> float:
            values.append(own())
            return values[-1]

        ratio = interleave(
            kept,
            lambda: peer_speed(peer, column, int(draws.integers(1 << 31))),
            rounds=rounds,
            better="higher",
            seed=seed,
        )
        info = engine.device.info
        conditions = {
            "model": "SmolLM2-135M-Instruct",
            "our_weights": engine.model.weight_format(),
            "peer_weights": kind.lower(),
            "batch": column.batch,
            "context_tokens": 0 if column.is_prefill else CONTEXT,
            "threads": int(info.properties["cpu.threads"]),
            "isa": info.properties["cpu.isa"],
        }
    trial.add(
        summarise(values[1:]),
        rounds=rounds,
        ratio=ratio,
        peer_name="llama.cpp",
        peer_version=version,
        name=f"{column.name}_tokens_per_second",
        unit="tokens/s",
        versions={"llama-cpp-python": version, "python": sys.version.split()[0]},
        goal=column.goal,
        quality={**quality, "load_average_max": round(max(loads), 2)},
        conditions=conditions,
    )


def print_table(records: list[Measurement]) -> None:
    """Ours, the peer's and the ratio, for people."""
    print(f"{'tokens/s':<34}{'ours':>9}{'llama.cpp':>11}{'format':>8}{'ratio':>8}{'goal':>7}")
    for record in records:
        assert record.peer is not None
        print(
            f"{record.name:<34}{record.p50:>9.0f}{record.peer.p50:>11.0f}"
            f"{record.conditions['peer_weights']:>8}{record.ratio:>7.2f}x{record.goal:>6.1f}x"
        )


if __name__ == "__main__":
    sys.exit(main())
