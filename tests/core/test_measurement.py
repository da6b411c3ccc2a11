import json
from pathlib import Path
from typing import Any

import pytest

from bedplate.core import measurement, samples
from bedplate.core.errors import UsageError
from bedplate.core.machine import MachineFacts, TreeFacts
from bedplate.core.measurement import IncompleteMeasurement, Measurement

MACHINE = MachineFacts("testium-2c", "Testium", 2, "6.1", 0.5, "avx2")
TREE = TreeFacts("c" * 40, False)


def make(**changes: Any) -> Measurement:
    """A whole measurement with a peer, some fields changed."""
    ratio = samples.compare([1.0, 2.0, 3.0], [2.0, 4.0, 6.0], "lower")
    fields: dict[str, Any] = {
        "system": "kernels",
        "name": "matmul",
        "unit": "ns",
        "better": "lower",
        "machine": MACHINE,
        "versions": {"numpy": "2.4.6"},
        "peer_name": "numpy",
        "peer_version": "2.4.6",
        "time_ns": 1,
    }
    return measurement.measured(ratio.ours, rounds=3, tree=TREE, ratio=ratio, **fields | changes)


def test_a_record_is_complete_from_its_samples() -> None:
    """Statistics, peer and ratio are filled, and every null says why."""
    record = make().to_json()
    assert (record["value"], record["kept"], record["ratio"]) == (2.0, 3, 2.0)
    assert record["peer"] == {"name": "numpy", "version": "2.4.6", "p50": 4.0}
    nulls = {name for name, value in record.items() if value is None and name != "reason"}
    assert nulls == {"interval", "ratio_interval", "device", "goal", "seed"}
    assert all(record[f"{name}_reason"] for name in nulls)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"unit": ""}, "unit is empty"),
        ({"versions": {}}, "versions is empty"),
    ],
)
def test_a_record_that_lacks_facts_is_refused(changes: dict[str, Any], problem: str) -> None:
    """A number that nobody can derive again is not published."""
    with pytest.raises(IncompleteMeasurement, match=problem):
        make(**changes)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"value": None}, "value is None"),
        ({"p50": float("nan")}, "p50 is nan"),
        ({"kept": None}, "kept is None"),
        ({"p5": 9.0}, "not in order"),
        ({"reasons": {}}, "null without"),
        ({"ratio": 1.0, "ratio_interval": (1.0, 1.0)}, "a ratio needs a peer"),
    ],
)
def test_a_record_made_by_hand_is_checked_too(changes: dict[str, Any], problem: str) -> None:
    """There is no way around the check."""
    fields: dict[str, Any] = {
        "system": "kernels",
        "name": "matmul",
        "unit": "ns",
        "better": "lower",
        "machine": MACHINE,
        "commit": "c",
        "dirty": False,
        "versions": {"x": "1"},
        "value": 1.0,
        "p5": 1.0,
        "p50": 1.0,
        "p95": 1.0,
        "interval": (1.0, 1.0),
        "kept": 9,
        "rounds": 9,
        "reasons": dict.fromkeys(
            ("device", "peer", "ratio", "ratio_interval", "goal", "seed"), "no"
        ),
    }
    Measurement(**fields)
    with pytest.raises(IncompleteMeasurement, match=problem):
        Measurement(**fields | changes)


def test_what_did_not_run_has_a_reason_and_no_value() -> None:
    """NOT RUN is a record, never a pass and never a number."""
    fields: dict[str, Any] = {
        "system": "kernels",
        "name": "matmul",
        "unit": "ns",
        "better": "lower",
        "machine": MACHINE,
        "commit": "c",
        "dirty": False,
        "versions": {"x": "1"},
        "status": "not_run",
    }
    assert Measurement(**fields, reason="no GPU").to_json()["value"] is None
    with pytest.raises(IncompleteMeasurement, match="no reason"):
        Measurement(**fields)
    with pytest.raises(IncompleteMeasurement, match="has a value"):
        Measurement(**fields, reason="no GPU", value=1.0)


def test_a_file_keeps_the_newest_of_each_name(tmp_path: Path) -> None:
    """Measuring again replaces; other conditions are another number."""
    path = measurement.results_path(tmp_path, MACHINE, "2031-01-02")
    assert path.name == "2031-01-02-testium-2c.json"
    measurement.store(path, [make(conditions={"threads": 1}), make(conditions={"threads": 2})])
    measurement.store(path, [make(conditions={"threads": 2}, time_ns=5)])
    found = {r["conditions"]["threads"]: r["time_ns"] for r in measurement.load(path)}
    assert found == {1: 1, 2: 5}
    assert json.loads(path.read_text())["schema"] == "bedplate.measurements/1"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "x", "results": []}'])
def test_a_foreign_file_is_never_overwritten(tmp_path: Path, text: str) -> None:
    """A mistyped path does not cost somebody's file."""
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(UsageError):
        measurement.store(path, [make()])
    assert path.read_text() == text
