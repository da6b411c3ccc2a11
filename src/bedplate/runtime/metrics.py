"""The `alloc_*` metrics: what an allocator's pools are, read when somebody asks.

Gauges are of a device and a pool. Counters are of the process: every allocator
that is published adds to them what it counted since the last read. The histogram
is of requests from Python, timed only when they are published.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from bedplate.core.metrics import MetricRegistry, geometric_buckets
from bedplate.runtime.allocator import POOLS, Allocator
from bedplate.runtime.stats import PoolStats

STATES: dict[str, Callable[[PoolStats], float]] = {
    "reserved": lambda stats: stats.reserved_bytes,
    "allocated": lambda stats: stats.allocated_bytes,
    "active": lambda stats: stats.allocated_bytes + stats.pending_free_bytes,
    "inactive_split": lambda stats: stats.inactive_split_bytes,
    "pending_free": lambda stats: stats.pending_free_bytes,
}
"""`alloc_bytes` by its label `state`."""

GAUGES: dict[str, tuple[str, Callable[[PoolStats], float]]] = {
    "alloc_largest_free_block_bytes": (
        "the largest block free in a pool",
        lambda stats: stats.largest_free_block_bytes,
    ),
    "alloc_fragmentation_ratio": (
        "the part of a pool's free bytes that its largest free block is not",
        lambda stats: stats.fragmentation,
    ),
    "alloc_segments": (
        "segments, or mapped pieces, of a pool",
        lambda stats: stats.small.segment.current + stats.large.segment.current,
    ),
}

LATENCY_BUCKETS_S = geometric_buckets(250e-9, 2, 26)
"""250 ns, about what a call from Python takes, to 8.4 s."""


def publish(memory: Allocator, registry: MetricRegistry, device: str) -> None:
    """The registry's `alloc_*` rows of every pool; zeros once the allocator is closed."""
    labels = ("device", "pool")
    sizes = registry.gauge(
        "alloc_bytes", (*labels, "state"), help="bytes of a pool by what they are"
    )
    gauges = {name: registry.gauge(name, labels, help=help) for name, (help, _) in GAUGES.items()}
    calls = registry.counter(
        "alloc_driver_calls_total",
        ("call", "phase"),
        help="driver calls asked for by pools, before they were sealed and after",
    )
    failures = registry.counter("alloc_ooms_total", help="requests that did not fit")
    retries = registry.counter(
        "alloc_retries_total", help="searches that began again after blocks came back"
    )
    memory.latency = registry.histogram(
        "alloc_latency_seconds", buckets=LATENCY_BUCKETS_S, help="what a request took"
    )
    told: dict[tuple[str, ...], int] = {}

    def grown(value: int, *key: str) -> int:
        before = told.get(key, 0)
        told[key] = value
        return value - before

    def count(pool: str, stats: PoolStats) -> None:
        for phase, made in (("warmup", stats.open), ("sealed", stats.sealed)):
            for call, value in asdict(made).items():
                calls.labels(call=call, phase=phase).inc(grown(value, pool, call, phase))
        failures.inc(grown(stats.out_of_memory, pool, "ooms"))
        retries.inc(grown(stats.retries, pool, "retries"))

    def refresh() -> None:
        for pool in POOLS:
            # A last read may come when the allocator is closed.
            stats = None if memory.closed else memory.stats(pool)
            for state, of in STATES.items():
                sizes.labels(device=device, pool=pool, state=state).set(of(stats) if stats else 0)
            for name, (_, of) in GAUGES.items():
                gauges[name].labels(device=device, pool=pool).set(of(stats) if stats else 0)
            if stats:
                count(pool, stats)

    registry.before_collect(refresh)
