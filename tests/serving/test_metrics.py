"""What the engine publishes about one request's life, in seconds and tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.serving.files import write_gguf

from bedplate.core.metrics import Registry
from bedplate.serving.gguf_model import GgufModel
from bedplate.serving.metrics import EngineMetrics, add_vllm_aliases
from bedplate.serving.request import FinishReason, Live, Request
from bedplate.serving.sampling import Sampling
from bedplate.serving.scheduler import Stats

SECOND = 1_000_000_000


def read(registry: Registry, name: str, **labels: str) -> float:
    """One exported value."""
    families = text_string_to_metric_families(registry.exposition().decode())
    return next(
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == f"bedplate_engine_{name}" and labels.items() <= sample.labels.items()
    )


@pytest.fixture
def live(tmp_path: Path) -> Live:
    """A request that arrived at 10 s and was taken up at 12 s."""
    tokenizer = GgufModel(write_gguf(tmp_path / "tiny.gguf")).tokenizer()
    made = Live(0, Request([5, 6, 7], Sampling()), lambda _: None, tokenizer, 9, 10 * SECOND)
    made.admitted_ns = 12 * SECOND
    return made


def test_the_times_of_a_request_count_from_its_arrival(live: Live) -> None:
    """Of one that came at 10 s: taken up at 12 s, five tokens from 13 to 20 s, away at 21 s."""
    registry = Registry()
    metrics = EngineMetrics(registry, "tiny", "1.0")
    metrics.first_token(live, 13 * SECOND)
    live.first_token_ns, live.generated = 13 * SECOND, 5
    live.last_token_ns = 20 * SECOND
    metrics.ended(live, FinishReason.STOP, 21 * SECOND)
    assert read(registry, "ttft_seconds_sum") == 3.0
    assert read(registry, "queue_seconds_sum") == 2.0
    assert read(registry, "prefill_seconds_sum") == 1.0
    assert read(registry, "decode_seconds_sum") == 7.0
    assert read(registry, "e2e_seconds_sum") == 11.0
    assert read(registry, "tpot_seconds_sum") == 2.0
    assert read(registry, "tokens_total", dir="prompt") == 3.0
    assert read(registry, "requests_total", code="ok") == 1.0


def test_one_token_has_no_time_between_tokens(live: Live) -> None:
    """A request of a single token is left out of the time per token."""
    registry = Registry()
    metrics = EngineMetrics(registry, "tiny", "1.0")
    live.token_at(13 * SECOND)
    live.generated = 1
    metrics.ended(live, FinishReason.LENGTH, 13 * SECOND)
    assert read(registry, "tpot_seconds_count") == 0.0
    assert read(registry, "decode_seconds_count") == 1.0
    assert read(registry, "decode_seconds_sum") == 0.0
    assert read(registry, "e2e_seconds_count") == 1.0


def test_every_token_but_the_first_has_a_time_since_the_one_before(live: Live) -> None:
    """Tokens at 13, 14 and 17 s: the gaps are 1 s and 3 s."""
    registry = Registry()
    metrics = EngineMetrics(registry, "tiny", "1.0")
    assert live.token_at(13 * SECOND) is None
    for now in (14, 17):
        gap = live.token_at(now * SECOND)
        assert gap is not None
        metrics.next_token(gap)
    assert (live.first_token_ns, live.last_token_ns) == (13 * SECOND, 17 * SECOND)
    assert read(registry, "inter_token_seconds_count") == 2.0
    assert read(registry, "inter_token_seconds_sum") == 4.0


@pytest.mark.parametrize(
    ("reason", "code"),
    [(FinishReason.ABORT, "cancelled"), (FinishReason.ERROR, "server_error")],
)
def test_a_request_that_failed_has_no_latency(live: Live, reason: FinishReason, code: str) -> None:
    """Latencies are those of answers."""
    registry = Registry()
    metrics = EngineMetrics(registry, "tiny", "1.0")
    metrics.ended(live, reason, 21 * SECOND)
    assert read(registry, "requests_total", code=code) == 1.0
    assert read(registry, "e2e_seconds_count") == 0.0


# The table of names that dashboards made for vLLM ask for; histograms by their base name.
VLLM_NAMES = {
    "num_requests_running",
    "num_requests_waiting",
    "kv_cache_usage_perc",
    "time_to_first_token_seconds",
    "time_per_output_token_seconds",
    "e2e_request_latency_seconds",
    "request_queue_time_seconds",
    "request_prefill_time_seconds",
    "request_decode_time_seconds",
    "inter_token_latency_seconds",
    "prefix_cache_queries_total",
    "prefix_cache_hits_total",
    "num_preemptions_total",
    "prompt_tokens_total",
    "generation_tokens_total",
    "request_success_total",
}


def test_the_aliases_are_the_names_of_the_table_and_no_others() -> None:
    """Each with a series, under labels of ours without the one that chose it."""
    registry = Registry()
    EngineMetrics(registry, "tiny", "1.0")
    add_vllm_aliases(registry)
    found = [family for family in registry.collect() if family.name.startswith("vllm:")]
    assert sorted(family.name for family in found) == sorted(f"vllm:{n}" for n in VLLM_NAMES)
    for family in found:
        assert family.samples, family.name
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == {"model_name", "engine"}


def test_derived_names_say_what_vllm_means() -> None:
    """Usage is the share of all blocks that requests hold; queries are hits and misses."""
    registry = Registry()
    metrics = EngineMetrics(registry, "tiny", "1.0")
    add_vllm_aliases(registry)
    metrics.stepped(
        Stats(
            waiting=0, running=1, blocks_clean=10, blocks_cached=5, blocks_referenced=4,
            blocks_fenced=1, steps=1, preemptions=0, evictions=0, prefix_queried=70,
            prefix_hit=48, added=1, ended=0, prefix_hashes=4,
        ),
        1,
    )  # fmt: skip
    text = registry.exposition().decode()
    labels = '{engine="bedplate",model_name="tiny"}'
    for line in ("kv_cache_usage_perc{} 0.25", "prefix_cache_queries_total{} 70.0",
                 "prefix_cache_hits_total{} 48.0"):  # fmt: skip
        assert f"vllm:{line.replace('{}', labels)}\n" in text
