"""The measurement/1 record, and the file that published numbers lie in.

A number without its error bar, seed, commit and machine cannot be derived
again, so a record that lacks one is refused when it is made, not when it is
read. A record of what could not run has no value but always a reason. Null
fields say why in `reasons`, written as `<field>_reason`.
"""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bedplate.core import files
from bedplate.core.errors import UsageError
from bedplate.core.machine import MachineFacts, TreeFacts
from bedplate.core.samples import Better, Ratio, Summary

SCHEMA = "bedplate.measurement/1"
FILE_SCHEMA = "bedplate.measurements/1"
_REQUIRED_IF_OK = ("value", "p5", "p50", "p95", "kept", "rounds")
_NULLABLE = ("interval", "device", "peer", "ratio", "ratio_interval", "goal", "seed")


class IncompleteMeasurement(UsageError):
    """A record lacks what is needed to derive its number again."""

    code = "core.incomplete_measurement"


@dataclass(frozen=True, slots=True)
class Peer:
    """Whom we ran beside us, in the same unit as our value."""

    name: str
    version: str
    p50: float


@dataclass(frozen=True, slots=True)
class MeasuredDevice:
    """The device that a number was measured on."""

    id: str
    name: str
    uuid: str | None = None
    driver: str | None = None
    clock_hz: int | None = None
    throttle: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Measurement:
    """One published number; see contracts.md, measurement/1.

    `ratio` is ours over the peer, inverted where lower is better: above 1 is
    a win. `quality` holds the check that makes a speed honest, `conditions`
    what was held fixed (threads, batch, prompt length).
    """

    system: str
    name: str
    unit: str
    better: Better
    machine: MachineFacts
    commit: str
    dirty: bool
    versions: Mapping[str, str]
    status: Literal["ok", "not_run"] = "ok"
    reason: str | None = None
    value: float | None = None
    p5: float | None = None
    p50: float | None = None
    p95: float | None = None
    interval: tuple[float, float] | None = None
    kept: int | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    rounds: int | None = None
    seed: int | None = None
    time_ns: int = field(default_factory=time.time_ns)
    device: MeasuredDevice | None = None
    peer: Peer | None = None
    ratio: float | None = None
    ratio_interval: tuple[float, float] | None = None
    goal: float | None = None
    quality: Mapping[str, Any] = field(default_factory=dict)
    conditions: Mapping[str, Any] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    schema: str = SCHEMA

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise IncompleteMeasurement(f"measurement {self.system}/{self.name}: {problem}")

    def _problems(self) -> Sequence[str]:
        problems = [f"{f} is empty" for f in ("unit", "commit", "versions") if not getattr(self, f)]
        if self.status == "not_run":
            if not self.reason:
                problems.append("status not_run has no reason")
            if self.value is not None:
                problems.append("status not_run has a value")
            return problems
        for name in _REQUIRED_IF_OK:
            value = getattr(self, name)
            if value is None or not math.isfinite(value):
                problems.append(f"{name} is {value}")
        if not problems and not self.p5 <= self.p50 <= self.p95:  # type: ignore[operator]
            problems.append(f"p5, p50, p95 are not in order: {self.p5}, {self.p50}, {self.p95}")
        for name in _NULLABLE:
            if getattr(self, name) is None and not self.reasons.get(name):
                problems.append(f"{name} is null without {name}_reason")
        if (self.peer is None) != (self.ratio is None):
            problems.append("a ratio needs a peer, and a peer a ratio")
        return problems

    def to_json(self) -> dict[str, Any]:
        """The record as it is stored."""
        record = dataclasses.asdict(self)
        reasons = record.pop("reasons")
        record.update({f"{name}_reason": text for name, text in reasons.items()})
        return record


def measured(
    summary: Summary, *, rounds: int, tree: TreeFacts, ratio: Ratio | None = None, **fields: Any
) -> Measurement:
    """A measurement from `core.samples`: fills the statistics and the ratio.

    With `ratio`, `fields` must hold `peer_name` and `peer_version`.
    """
    statistics: dict[str, Any] = {
        "value": summary.p50,
        "p5": summary.p5,
        "p50": summary.p50,
        "p95": summary.p95,
        "interval": summary.interval,
        "kept": summary.count,
        "rounds": rounds,
    }
    reasons = dict(fields.pop("reasons", {}))
    if summary.interval is None:
        reasons["interval"] = f"{summary.count} values are too few for a 95 % interval"
    if ratio is not None:
        name, version = fields.pop("peer_name"), fields.pop("peer_version")
        statistics |= {
            "peer": Peer(name, version, ratio.peer.p50),
            "ratio": ratio.ratio,
            "ratio_interval": ratio.interval,
        }
        if ratio.interval is None:
            reasons["ratio_interval"] = f"{ratio.rounds} rounds are too few for a 95 % interval"
    else:
        for name in ("peer", "ratio", "ratio_interval"):
            reasons.setdefault(name, "measured without a peer")
    for name, reason in (("device", "the processor itself"), ("goal", "no goal is set")):
        if fields.get(name) is None:
            reasons.setdefault(name, reason)
    if fields.get("seed") is None:
        reasons.setdefault("seed", "nothing random was involved")
    return Measurement(
        **statistics, **fields, commit=tree.commit, dirty=tree.dirty, reasons=reasons
    )


def results_path(folder: Path, machine: MachineFacts, day: str | None = None) -> Path:
    """`<folder>/<date>-<machine>.json`, the date in UTC unless given."""
    return folder / f"{day or time.strftime('%Y-%m-%d', time.gmtime())}-{machine.name}.json"


def store(path: Path, measurements: Sequence[Measurement]) -> None:
    """Add measurements to a file, replacing earlier ones of the same name.

    Two are the same when system, name and conditions agree. Raises
    `UsageError` when the file exists and is not a measurements file.
    """
    known = load(path) if path.exists() else []
    fresh = [measurement.to_json() for measurement in measurements]
    replaced = {_identity(record) for record in fresh}
    results = [record for record in known if _identity(record) not in replaced] + fresh
    text = json.dumps({"schema": FILE_SCHEMA, "results": results}, indent=1, allow_nan=False)
    files.replace(path, text + "\n")


def load(path: Path) -> list[dict[str, Any]]:
    """The records of a measurements file, as stored."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["schema"] == FILE_SCHEMA:
            return list(content["results"])
    except (OSError, ValueError, KeyError, TypeError) as cause:
        raise UsageError(f"{path} is not a measurements file: {cause}") from cause
    raise UsageError(f"{path} has the schema {content['schema']!r}, not {FILE_SCHEMA}")


def _identity(record: Mapping[str, Any]) -> str:
    key = [record["system"], record["name"], record["conditions"]]
    return json.dumps(key, sort_keys=True)
