"""What the engine publishes: the registry's `engine_*` rows, and vLLM's names for them."""

from __future__ import annotations

import time
from collections.abc import Mapping

from bedplate.core.metrics import LATENCY_BUCKETS_S, Histogram, MetricRegistry, Registry
from bedplate.serving.request import FinishReason, Live
from bedplate.serving.scheduler import Stats

LABELS = ("model_name", "engine")


class EngineMetrics:
    """Counters, gauges and histograms of one engine. One thread writes them."""

    def __init__(self, registry: MetricRegistry, model_name: str, version: str) -> None:
        labels = {"model_name": model_name, "engine": "bedplate"}

        def histogram(quantity: str, help: str) -> Histogram:
            name = f"engine_{quantity}_seconds"
            return registry.histogram(name, LABELS, buckets=LATENCY_BUCKETS_S, help=help).labels(
                **labels
            )

        requests = registry.counter(
            "engine_requests_total", (*LABELS, "code"), help="requests by how they ended"
        )
        self._ended = {
            code: requests.labels(**labels, code=code)
            for code in ("ok", "client_error", "server_error", "timeout", "cancelled", "shed")
        }
        self._first_token = histogram("ttft", "arrival to first token")
        self._per_token = histogram("tpot", "mean time of the tokens after the first")
        self._between = histogram("inter_token", "one token of a request to its next")
        self._queue = histogram("queue", "arrival to first step")
        self._prefill = histogram("prefill", "first step to first token")
        self._decode = histogram("decode", "first token to last token")
        self._total = histogram("e2e", "arrival to last token")
        tokens = registry.counter(
            "engine_tokens_total", (*LABELS, "dir"), help="tokens read and written"
        )
        self._read = tokens.labels(**labels, dir="prompt")
        self._written = tokens.labels(**labels, dir="generation")
        self._steps = registry.counter("engine_steps_total", LABELS, help="steps that ran").labels(
            **labels
        )
        self._last_step = registry.gauge(
            "engine_last_step_timestamp_seconds", LABELS, help="Unix time of the last step"
        ).labels(**labels)
        self._running = registry.gauge(
            "engine_running", LABELS, help="requests holding blocks"
        ).labels(**labels)
        self._waiting = registry.gauge(
            "engine_waiting", LABELS, help="requests waiting for a first or another turn"
        ).labels(**labels)
        blocks = registry.gauge("engine_kv_blocks", (*LABELS, "state"), help="KV blocks by state")
        self._blocks = {s: blocks.labels(**labels, state=s) for s in ("free", "used", "cached")}
        self._preemptions = registry.counter(
            "engine_preemptions_total", LABELS, help="requests that lost their blocks"
        ).labels(**labels)
        prefix = registry.counter(
            "engine_prefix_tokens_total", (*LABELS, "result"), help="prompt tokens by prefix lookup"
        )
        self._hit = prefix.labels(**labels, result="hit")
        self._miss = prefix.labels(**labels, result="miss")
        registry.gauge(
            "engine_build_info", (*LABELS, "version", "cuda", "driver_min"), help="what runs"
        ).labels(**labels, version=version, cuda="", driver_min="").set(1)
        self._before: Stats | None = None

    def refused(self, *, shed: bool) -> None:
        """A request was turned away: a full queue (`shed`) or the client's own fault."""
        self._ended["shed" if shed else "client_error"].inc()

    def stepped(self, stats: Stats, written_tokens: int) -> None:
        """A step ran; counters of the scheduler are taken as differences."""
        self._steps.inc()
        self._last_step.set(time.time())
        self._written.inc(written_tokens)
        before = self._before
        hits = stats.prefix_hit - (before.prefix_hit if before else 0)
        asked = stats.prefix_queried - (before.prefix_queried if before else 0)
        self._hit.inc(hits)
        self._miss.inc(asked - hits)
        self._preemptions.inc(stats.preemptions - (before.preemptions if before else 0))
        self._before = stats
        self.state(stats)

    def state(self, stats: Stats) -> None:
        """Gauges of requests and blocks."""
        self._running.set(stats.running)
        self._waiting.set(stats.waiting)
        self._blocks["free"].set(stats.blocks_clean)
        self._blocks["cached"].set(stats.blocks_cached)
        self._blocks["used"].set(stats.blocks_referenced + stats.blocks_fenced)

    def first_token(self, live: Live, now_ns: int) -> None:
        """A request got its first token, so all of its prompt was read."""
        self._read.inc(len(live.request.prompt))
        self._first_token.observe((now_ns - live.arrived_ns) / 1e9)
        if live.admitted_ns is not None:
            self._queue.observe((live.admitted_ns - live.arrived_ns) / 1e9)
            self._prefill.observe((now_ns - live.admitted_ns) / 1e9)

    def next_token(self, gap_ns: int) -> None:
        """A request got a token this long after the one before; 1.3 us, by 20,000 in a loop."""
        self._between.observe(gap_ns / 1e9)

    def ended(self, live: Live, reason: FinishReason, now_ns: int) -> None:
        """A request got its last output."""
        if reason is FinishReason.ABORT:
            self._ended["cancelled"].inc()
            return
        if reason is FinishReason.ERROR:
            self._ended["server_error"].inc()
            return
        self._ended["ok"].inc()
        self._total.observe((now_ns - live.arrived_ns) / 1e9)
        if live.first_token_ns is not None and live.last_token_ns is not None:
            self._decode.observe((live.last_token_ns - live.first_token_ns) / 1e9)
            if live.generated > 1:
                span = (now_ns - live.first_token_ns) / (live.generated - 1)
                self._per_token.observe(span / 1e9)


def _share_used(blocks: Mapping[str, float]) -> float:
    """Of all blocks, from 0 to 1; 0 before there are any."""
    total = sum(blocks.values())
    return blocks["used"] / total if total else 0.0


def add_vllm_aliases(registry: Registry) -> None:
    """Repeat the rows under vLLM's names and meanings, for dashboards made for it.

    Source: vLLM's documentation of its metrics. Usage is a share from 0 to 1;
    prefix-cache counters count tokens.
    """
    registry.alias("vllm:num_requests_running", "engine_running")
    registry.alias("vllm:num_requests_waiting", "engine_waiting")
    registry.alias("vllm:num_preemptions_total", "engine_preemptions_total")
    registry.alias("vllm:prompt_tokens_total", "engine_tokens_total", {"dir": "prompt"})
    registry.alias("vllm:generation_tokens_total", "engine_tokens_total", {"dir": "generation"})
    registry.alias("vllm:prefix_cache_hits_total", "engine_prefix_tokens_total", {"result": "hit"})
    registry.derive(
        "vllm:prefix_cache_queries_total",
        "engine_prefix_tokens_total",
        "result",
        lambda tokens: sum(tokens.values()),
    )
    registry.derive("vllm:kv_cache_usage_perc", "engine_kv_blocks", "state", _share_used)
    registry.alias("vllm:request_success_total", "engine_requests_total", {"code": "ok"})
    registry.alias("vllm:time_to_first_token_seconds", "engine_ttft_seconds")
    registry.alias("vllm:e2e_request_latency_seconds", "engine_e2e_seconds")
    registry.alias("vllm:request_queue_time_seconds", "engine_queue_seconds")
    registry.alias("vllm:request_prefill_time_seconds", "engine_prefill_seconds")
    registry.alias("vllm:request_decode_time_seconds", "engine_decode_seconds")
    registry.alias("vllm:time_per_output_token_seconds", "engine_tpot_seconds")
    registry.alias("vllm:inter_token_latency_seconds", "engine_inter_token_seconds")
