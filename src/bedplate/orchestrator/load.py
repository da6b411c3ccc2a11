"""What an engine is doing, read from the metrics that everybody else reads too.

Rates come from two readings a moment apart; a single reading has none.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

RATE_WINDOW_S = 0.5
_TIMEOUT_S = 3.0
_FAILURES = ("server_error", "timeout", "shed")


@dataclass(frozen=True)
class EngineLoad:
    """Requests, blocks and tokens of one engine since it started.

    `last_step_ns` is Unix time, None before the first step; `tokens_per_second`
    counts generated tokens, None without a second reading.
    """

    running: int
    waiting: int
    finished: int
    cancelled: int
    refused: int
    failed: int
    blocks_used: int
    blocks_cached: int
    blocks_total: int
    tokens_read: int
    tokens_written: int
    preemptions: int
    last_step_ns: int | None
    tokens_per_second: float | None = None


def parse(text: str) -> EngineLoad:
    """The load from the text of `/metrics`. Raises `ValueError` when it is none."""
    found = {
        (sample.name.removeprefix("bedplate_engine_"), _detail(sample.labels)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("bedplate_engine_")
    }
    if ("running", "") not in found:
        raise ValueError("no engine metrics")

    def count(name: str, detail: str = "") -> int:
        return int(found.get((name, detail), 0))

    blocks = {state: count("kv_blocks", state) for state in ("free", "used", "cached")}
    last_step_s = found.get(("last_step_timestamp_seconds", ""), 0.0)
    return EngineLoad(
        running=count("running"),
        waiting=count("waiting"),
        finished=count("requests_total", "ok"),
        cancelled=count("requests_total", "cancelled"),
        refused=count("requests_total", "client_error"),
        failed=sum(count("requests_total", code) for code in _FAILURES),
        blocks_used=blocks["used"],
        blocks_cached=blocks["cached"],
        blocks_total=sum(blocks.values()),
        tokens_read=count("tokens_total", "prompt"),
        tokens_written=count("tokens_total", "generation"),
        preemptions=count("preemptions_total"),
        last_step_ns=int(last_step_s * 1e9) or None,
    )


def _detail(labels: Mapping[str, str]) -> str:
    return labels.get("code") or labels.get("state") or labels.get("dir") or ""


def read_load(url: str, key: str) -> EngineLoad | None:
    """The load of the engine behind the gateway at `url`, with a rate; None without one.

    Takes `RATE_WINDOW_S` while the engine works.
    """
    headers = {"Authorization": f"Bearer {key}"}
    try:
        with httpx.Client(timeout=_TIMEOUT_S, headers=headers, trust_env=False) as client:

            def reading() -> tuple[float, EngineLoad]:
                answer = client.get(f"{url}/metrics").raise_for_status()
                return time.monotonic(), parse(answer.text)

            begun, first = reading()
            if first.running + first.waiting == 0:
                return _with_rate(first, 0.0)
            time.sleep(RATE_WINDOW_S)
            ended, second = reading()
    except (httpx.HTTPError, ValueError):
        return None
    written = second.tokens_written - first.tokens_written
    return _with_rate(second, max(0, written) / (ended - begun))


def _with_rate(load: EngineLoad, rate: float) -> EngineLoad:
    values: dict[str, Any] = {**load.__dict__, "tokens_per_second": round(rate, 1)}
    return EngineLoad(**values)
