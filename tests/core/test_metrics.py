import pytest
from prometheus_client.parser import text_string_to_metric_families

from bedplate.core.metrics import LATENCY_BUCKETS_S, MetricError, Registry


@pytest.fixture
def registry() -> Registry:
    """A registry of its own for each test."""
    return Registry()


def series(registry: Registry) -> dict[str, float]:
    """Every exported series, read back by the library's own parser."""
    return {
        sample.name + "".join(f"|{k}={v}" for k, v in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(registry.exposition().decode())
        for sample in family.samples
    }


def test_names_get_the_prefix_and_values_come_out(registry: Registry) -> None:
    """What a system publishes is what a scraper reads."""
    registry.counter("engine_steps_total").inc(3)
    registry.gauge("engine_kv_blocks", ["state"]).labels(state="free").set(7)
    assert series(registry) == {
        "bedplate_engine_steps_total": 3.0,
        "bedplate_engine_kv_blocks|state=free": 7.0,
    }


def test_no_created_series(registry: Registry) -> None:
    """A restart time per series is noise and breaks the series budget."""
    registry.counter("engine_steps_total").inc()
    registry.histogram("engine_ttft_seconds").observe(1.0)
    assert not [name for name in series(registry) if "_created" in name]


def test_a_histogram_counts_sums_and_ends_at_infinity(registry: Registry) -> None:
    """Cumulative buckets, as Prometheus defines them."""
    histogram = registry.histogram("engine_ttft_seconds", buckets=(1.0, 2.0))
    for value in (0.5, 1.5, 9.0):
        histogram.observe(value)
    assert series(registry) == {
        "bedplate_engine_ttft_seconds_bucket|le=1.0": 1.0,
        "bedplate_engine_ttft_seconds_bucket|le=2.0": 2.0,
        "bedplate_engine_ttft_seconds_bucket|le=+Inf": 3.0,
        "bedplate_engine_ttft_seconds_count": 3.0,
        "bedplate_engine_ttft_seconds_sum": 11.0,
    }


def test_asking_again_gives_the_same_metric(registry: Registry) -> None:
    """Two modules may declare what they share."""
    registry.counter("engine_steps_total").inc()
    registry.counter("engine_steps_total").inc()
    assert series(registry)["bedplate_engine_steps_total"] == 2.0


def test_two_shapes_of_one_name_are_refused(registry: Registry) -> None:
    """One family cannot be two things on one page."""
    registry.gauge("engine_kv_blocks", ["state"])
    with pytest.raises(MetricError, match="declared twice"):
        registry.gauge("engine_kv_blocks", ["kind"])


@pytest.mark.parametrize("name", ["steps", "engine-steps", "bedplate_engine_steps", "Engine_steps"])
def test_malformed_names_are_refused(registry: Registry, name: str) -> None:
    """<group>_<quantity>_<unit>, without the prefix."""
    with pytest.raises(MetricError, match="not a metric name"):
        registry.gauge(name)


def test_a_counter_ends_in_total(registry: Registry) -> None:
    """The suffix is part of the name that dashboards use."""
    with pytest.raises(MetricError, match="_total"):
        registry.counter("engine_steps")


def test_an_alias_never_disagrees(registry: Registry) -> None:
    """vLLM's name shows our value at the moment of reading."""
    tokens = registry.counter("engine_tokens_total", ["dir", "model_name"])
    registry.alias("vllm:prompt_tokens_total", "engine_tokens_total", where={"dir": "in"})
    tokens.labels(dir="in", model_name="m").inc(5)
    tokens.labels(dir="out", model_name="m").inc(9)
    assert series(registry)["vllm:prompt_tokens_total|model_name=m"] == 5.0
    tokens.labels(dir="in", model_name="m").inc(1)
    assert series(registry)["vllm:prompt_tokens_total|model_name=m"] == 6.0


def test_a_derived_metric_is_made_of_the_series_that_differ_in_one_label(
    registry: Registry,
) -> None:
    """One value for each combination of the other labels, without that label."""
    blocks = registry.gauge("engine_kv_blocks", ("engine", "state"))
    for engine, used, free in (("a", 1, 3), ("b", 2, 0)):
        blocks.labels(engine=engine, state="used").set(used)
        blocks.labels(engine=engine, state="free").set(free)
    registry.derive(
        "vllm:kv_cache_usage_perc",
        "engine_kv_blocks",
        "state",
        lambda values: values["used"] / (values["used"] + values["free"]),
    )
    text = registry.exposition().decode()
    assert "# TYPE vllm:kv_cache_usage_perc gauge" in text
    assert 'vllm:kv_cache_usage_perc{engine="a"} 0.25' in text
    assert 'vllm:kv_cache_usage_perc{engine="b"} 1.0' in text


def test_a_derived_counter_keeps_its_name(registry: Registry) -> None:
    """The sum of a counter is a counter, and its series ends in _total once."""
    tokens = registry.counter("engine_prefix_tokens_total", ("result",))
    tokens.labels(result="hit").inc(3)
    tokens.labels(result="miss").inc(4)
    registry.derive(
        "vllm:prefix_cache_queries_total",
        "engine_prefix_tokens_total",
        "result",
        lambda values: sum(values.values()),
    )
    text = registry.exposition().decode()
    assert "# TYPE vllm:prefix_cache_queries_total counter" in text
    assert "\nvllm:prefix_cache_queries_total 7.0\n" in text


def test_an_alias_of_a_histogram_has_all_its_series(registry: Registry) -> None:
    """Buckets, count and sum all carry the foreign name."""
    registry.histogram("engine_ttft_seconds", buckets=(1.0,)).observe(0.5)
    registry.alias("vllm:time_to_first_token_seconds", "engine_ttft_seconds")
    foreign = {name for name in series(registry) if name.startswith("vllm:")}
    assert foreign == {
        "vllm:time_to_first_token_seconds_bucket|le=1.0",
        "vllm:time_to_first_token_seconds_bucket|le=+Inf",
        "vllm:time_to_first_token_seconds_count",
        "vllm:time_to_first_token_seconds_sum",
    }


def test_the_latency_buckets_span_what_they_promise() -> None:
    """44 buckets of ratio 1.25 reach from 5 ms past a minute."""
    assert len(LATENCY_BUCKETS_S) == 44
    assert LATENCY_BUCKETS_S[0] == 0.005
    assert 70 < LATENCY_BUCKETS_S[-1] < 75
