"""Metrics: systems publish, a renderer or a `/metrics` route reads.

`Registry` is prometheus-client with three rules on top: every name gets the
prefix `bedplate_` and must be well formed; label keys are fixed at creation;
asking again for a metric with the same name gives the same one, and with
another kind or other labels is an error. Foreign names (vLLM's) exist only as an
`alias` of ours, or `derive`d from one, computed when read: they can never disagree.

prometheus-client adds a `_created` series to counters and histograms; they
are dropped when collected.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

import prometheus_client as prometheus
from prometheus_client.core import Metric as PrometheusFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from bedplate.core.errors import BedplateError

PREFIX = "bedplate_"
CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)+")
_LABEL = re.compile(r"[a-z][a-z0-9_]*")


class MetricError(BedplateError):
    """A metric is declared twice in different ways, or its name is malformed."""

    code = "core.metric"


class Counter(Protocol):
    """A number that only grows."""

    def inc(self, amount: float = 1) -> None:
        """Add `amount`, which is not negative."""
        ...

    def labels(self, **values: str) -> Counter:
        """The counter of one combination of label values."""
        ...


class Gauge(Protocol):
    """A number that is now what it is."""

    def set(self, value: float) -> None:
        """Replace the value."""
        ...

    def inc(self, amount: float = 1) -> None:
        """Add `amount`."""
        ...

    def dec(self, amount: float = 1) -> None:
        """Subtract `amount`."""
        ...

    def set_function(self, f: Callable[[], float]) -> None:
        """Ask `f` for the value whenever it is read."""
        ...

    def labels(self, **values: str) -> Gauge:
        """The gauge of one combination of label values."""
        ...


class Histogram(Protocol):
    """A distribution, counted in buckets."""

    def observe(self, amount: float) -> None:
        """Count one observation."""
        ...

    def labels(self, **values: str) -> Histogram:
        """The histogram of one combination of label values."""
        ...


@dataclass(frozen=True, slots=True)
class Sample:
    """One series of a family now: full name, labels, value."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Family:
    """All series of one metric."""

    name: str
    kind: str
    help: str
    samples: tuple[Sample, ...]


class MetricRegistry(Protocol):
    """What a system is given to publish through."""

    def counter(self, name: str, labels: Sequence[str] = (), *, help: str = "") -> Counter:
        """A counter; `name` has no prefix and ends in `_total`."""
        ...

    def gauge(self, name: str, labels: Sequence[str] = (), *, help: str = "") -> Gauge:
        """A gauge; `name` has no prefix."""
        ...

    def histogram(
        self, name: str, labels: Sequence[str] = (), *, buckets: Sequence[float], help: str = ""
    ) -> Histogram:
        """A histogram with ascending upper bounds; +Inf is added."""
        ...

    def before_collect(self, refresh: Callable[[], None]) -> None:
        """Call `refresh` before each read: for what is counted where no metric reaches."""
        ...

    def collect(self) -> list[Family]:
        """Everything published, at this moment."""
        ...


def geometric_buckets(first: float, ratio: float, count: int) -> tuple[float, ...]:
    """`count` upper bounds from `first`, each `ratio` times the one before.

    Ratio 1.25 keeps a quantile read from buckets within 5 % (docs/reference).
    """
    return tuple(first * ratio**step for step in range(count))


# 5 ms to 73 s: the latency histograms of an engine.
LATENCY_BUCKETS_S = geometric_buckets(0.005, 1.25, 44)

_Kind = TypeVar("_Kind", prometheus.Counter, prometheus.Gauge, prometheus.Histogram)


class Registry:
    """The `MetricRegistry` of one process; safe for threads."""

    def __init__(self) -> None:
        self._prometheus = prometheus.CollectorRegistry()
        self._lock = threading.Lock()
        self._made: dict[str, tuple[object, tuple[object, ...]]] = {}
        self._aliases: list[_Alias | _Derived] = []
        self._refresh: list[Callable[[], None]] = []
        self._refreshing = threading.Lock()

    def counter(self, name: str, labels: Sequence[str] = (), *, help: str = "") -> Counter:
        """See `MetricRegistry.counter`."""
        if not name.endswith("_total"):
            raise MetricError(f"the counter {name} does not end in _total")
        # The library takes the name without the suffix and adds it back.
        return cast(Counter, self._make(prometheus.Counter, name, labels, help))

    def gauge(self, name: str, labels: Sequence[str] = (), *, help: str = "") -> Gauge:
        """See `MetricRegistry.gauge`."""
        return cast(Gauge, self._make(prometheus.Gauge, name, labels, help))

    def histogram(
        self,
        name: str,
        labels: Sequence[str] = (),
        *,
        buckets: Sequence[float] = LATENCY_BUCKETS_S,
        help: str = "",
    ) -> Histogram:
        """See `MetricRegistry.histogram`."""
        return cast(Histogram, self._make(prometheus.Histogram, name, labels, help, tuple(buckets)))

    def alias(
        self, foreign: str, name: str, where: Mapping[str, str] | None = None, scale: float = 1.0
    ) -> None:
        """Publish series of `name` again under a foreign name.

        `where` keeps only series with these label values and drops the
        labels; `scale` multiplies values (of gauges and counters).
        """
        self._aliases.append(_Alias(foreign, PREFIX + name, dict(where or {}), scale))

    def derive(
        self, foreign: str, name: str, label: str, f: Callable[[Mapping[str, float]], float]
    ) -> None:
        """Publish one value made of the series of `name` that differ in `label` only.

        `f` gets their values by that label's, which the foreign series lack. For gauges
        and counters.
        """
        self._aliases.append(_Derived(foreign, PREFIX + name, label, f))

    def before_collect(self, refresh: Callable[[], None]) -> None:
        """See `MetricRegistry.before_collect`; one at a time, whoever reads."""
        self._refresh.append(refresh)

    def collect(self) -> list[Family]:
        """Everything published, aliases last."""
        with self._refreshing:
            for refresh in self._refresh:
                refresh()
        families = [_family(family) for family in self._prometheus.collect()]
        by_name = {family.name: family for family in families}
        for alias in self._aliases:
            if alias.of in by_name:
                families.append(alias.apply(by_name[alias.of]))
        return families

    def exposition(self) -> bytes:
        """The text of a `/metrics` answer; its type is `CONTENT_TYPE`."""
        return generate_latest(_Collected(self.collect()))

    def _make(
        self,
        kind: type[_Kind],
        name: str,
        labels: Sequence[str],
        help: str,
        buckets: tuple[float, ...] | None = None,
    ) -> _Kind:
        for label in labels:
            if not _LABEL.fullmatch(label):
                raise MetricError(f"{label!r} is not a label key of {name}")
        if not _NAME.fullmatch(name) or name.startswith(PREFIX):
            raise MetricError(
                f"{name!r} is not a metric name",
                remedy="use <group>_<quantity>_<unit> without the prefix bedplate_",
            )
        shape = (kind, tuple(labels), buckets)
        with self._lock:
            if name in self._made:
                made, known = self._made[name]
                if known != shape:
                    raise MetricError(f"{name} is declared twice with different kinds or labels")
                return cast(_Kind, made)
            options: dict[str, Any] = {"buckets": buckets} if buckets is not None else {}
            metric = kind(PREFIX + name, help or name, labels, registry=self._prometheus, **options)
            self._made[name] = (metric, shape)
            return metric


@dataclass(frozen=True, slots=True)
class _Alias:
    foreign: str
    of: str
    where: Mapping[str, str]
    scale: float

    def apply(self, family: Family) -> Family:
        samples = []
        for sample in family.samples:
            if all(sample.labels.get(key) == value for key, value in self.where.items()):
                labels = {k: v for k, v in sample.labels.items() if k not in self.where}
                name = self.foreign + sample.name.removeprefix(family.name)
                samples.append(Sample(name, labels, sample.value * self.scale))
        return Family(self.foreign, family.kind, family.help, tuple(samples))


@dataclass(frozen=True, slots=True)
class _Derived:
    foreign: str
    of: str
    label: str
    f: Callable[[Mapping[str, float]], float]

    def apply(self, family: Family) -> Family:
        groups: dict[tuple[tuple[str, str], ...], dict[str, float]] = {}
        for sample in family.samples:
            rest = tuple((k, v) for k, v in sample.labels.items() if k != self.label)
            groups.setdefault(rest, {})[sample.labels[self.label]] = sample.value
        samples = tuple(
            Sample(self.foreign, dict(rest), self.f(values)) for rest, values in groups.items()
        )
        return Family(self.foreign, family.kind, family.help, samples)


class _Collected(prometheus.CollectorRegistry):
    """Lets the library's writer render what was already collected."""

    def __init__(self, families: Iterable[Family]) -> None:
        super().__init__()
        self._families = families

    def collect(self) -> Iterable[PrometheusFamily]:
        for family in self._families:
            # The library wants a counter's base name and adds _total itself.
            base = family.name.removesuffix("_total") if family.kind == "counter" else family.name
            rendered = PrometheusFamily(base, family.help, family.kind)
            for sample in family.samples:
                rendered.add_sample(sample.name, dict(sample.labels), sample.value)
            yield rendered


def _family(family: PrometheusFamily) -> Family:
    name = f"{family.name}_total" if family.type == "counter" else family.name
    samples = tuple(
        Sample(sample.name, sample.labels, sample.value)
        for sample in family.samples
        if not sample.name.endswith("_created")
    )
    return Family(name, family.type, family.documentation, samples)
