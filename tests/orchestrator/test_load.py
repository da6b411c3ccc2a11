from __future__ import annotations

import pytest
from tests.orchestrator.conftest import until

from bedplate.core.metrics import Registry
from bedplate.orchestrator.api import EngineLoad, Platform
from bedplate.orchestrator.load import parse, read_load


def figures() -> Registry:
    """Every row that is read, with a different number each."""
    registry = Registry()
    labels = {"model_name": "m", "engine": "bedplate"}
    names = ("model_name", "engine")
    registry.gauge("engine_running", names).labels(**labels).set(2)
    registry.gauge("engine_waiting", names).labels(**labels).set(3)
    requests = registry.counter("engine_requests_total", (*names, "code"))
    codes = {
        "ok": 5, "cancelled": 7, "client_error": 11, "server_error": 13, "timeout": 17, "shed": 19,
    }  # fmt: skip
    for code, count in codes.items():
        requests.labels(**labels, code=code).inc(count)
    blocks = registry.gauge("engine_kv_blocks", (*names, "state"))
    for state, count in {"free": 23, "used": 29, "cached": 31}.items():
        blocks.labels(**labels, state=state).set(count)
    tokens = registry.counter("engine_tokens_total", (*names, "dir"))
    tokens.labels(**labels, dir="prompt").inc(37)
    tokens.labels(**labels, dir="generation").inc(41)
    registry.counter("engine_preemptions_total", names).labels(**labels).inc(43)
    registry.gauge("engine_last_step_timestamp_seconds", names).labels(**labels).set(47.5)
    registry.alias("vllm:num_requests_running", "engine_running")
    return registry


def test_the_load_is_read_from_the_metrics() -> None:
    """Each figure from its own row; failures are summed; no rate from one reading."""
    assert parse(figures().exposition().decode()) == EngineLoad(
        running=2,
        waiting=3,
        finished=5,
        cancelled=7,
        refused=11,
        failed=13 + 17 + 19,
        blocks_used=29,
        blocks_cached=31,
        blocks_total=23 + 29 + 31,
        tokens_read=37,
        tokens_written=41,
        preemptions=43,
        last_step_ns=47_500_000_000,
        tokens_per_second=None,
    )


def test_a_row_that_is_missing_counts_nothing() -> None:
    """As a counter that was never touched."""
    registry = Registry()
    registry.gauge("engine_running", ("engine",)).labels(engine="bedplate").set(0)
    load = parse(registry.exposition().decode())
    assert (load.finished, load.failed, load.blocks_total, load.last_step_ns) == (0, 0, 0, None)


@pytest.mark.parametrize("text", ["", "hello\n", "# TYPE up gauge\nup 1.0\n"])
def test_other_texts_are_refused(text: str) -> None:
    """No engine's metrics are not an idle engine."""
    with pytest.raises(ValueError, match=r".+"):
        parse(text)


def test_an_idle_engine_has_a_rate_of_zero(plate: Platform) -> None:
    """Nothing runs, so nothing is waited for."""

    def load() -> EngineLoad:
        found = read_load(plate.url, plate.internal_key)
        assert found is not None
        return found

    until(lambda: load().running == 0, "what other tests asked is over")
    assert load().tokens_per_second == 0.0
    assert load().blocks_total > 0


def test_no_gateway_and_a_wrong_key_have_no_load(plate: Platform) -> None:
    """None, not zeros."""
    assert read_load("http://127.0.0.1:9", "key") is None
    assert read_load(plate.url, "wrong") is None
