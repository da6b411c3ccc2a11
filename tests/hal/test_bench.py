"""What `bedplate hal bench` and the performance tier record, and when they record nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bedplate.hal import bench, certificate, conform
from bedplate.hal.api import BENCH_QUANTITIES, Device, Queue, bench_device, open_device
from bedplate.hal.open import device_infos, load
from bedplate.hal.suite.run import CaseResult, select

PEERS = {
    "call_c": "local function call",
    "launch_rate": None,
    "launch_marginal": None,
    "launch_one": None,
    "call_cffi": None,
    "copy_bandwidth": "memcpy",
    "fill_bandwidth": "memset",
}


def test_every_quantity_is_measured_beside_its_peer(device: Device) -> None:
    """On cpu all run; the peer is of the same rounds, in the same unit."""
    found = {one.name: one for one in bench_device(device, rounds=3)}
    assert set(found) == set(PEERS)
    for name, peer in PEERS.items():
        record = found[name]
        assert record.status == "ok"
        assert record.value is not None
        assert record.value > 0
        assert (None if record.peer is None else record.peer.name) == peer
        assert record.kept == record.rounds == 3
        assert record.device is not None
        assert record.device.id == "cpu:0"


def test_the_reference_has_every_quantity_in_the_same_words(device: Device) -> None:
    """With its unit and its peer; nothing is explained that is not measured."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "hal.md").read_text()
    for one in bench_device(device, rounds=1):
        words = BENCH_QUANTITIES[one.name]
        line = f"| `{one.name}` | {one.unit} | {words} | "
        (rest,) = [row.removeprefix(line) for row in page.splitlines() if row.startswith(line)]
        assert (rest == "|") is (PEERS[one.name] is None)
    assert set(BENCH_QUANTITIES) == set(PEERS)


def test_what_the_program_told_is_divided_by_its_launches(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What 900 launches more cost, each; the rate is of a batch of 300."""
    told = "table_call 4\ndirect_call 2\ncommand_300 10\ncommand_1200 20\none_launch 50\n"
    done = subprocess.CompletedProcess([], 0, told * 3, "")
    monkeypatch.setattr("bedplate.hal.bench.subprocess.run", lambda *words, **named: done)
    found = {one.name: one.ours for one in bench._from_c(device, 3)}
    assert found["launch_marginal"] == [pytest.approx((1200 * 20 - 300 * 10) / 900)] * 3
    assert found["launch_rate"] == [1e8] * 3
    assert found["launch_one"] == [50.0] * 3


def test_a_call_is_a_thousandth_of_a_thousand(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the clock before and after them."""
    clock = iter([5_000, 9_000, 20_000, 21_000])
    monkeypatch.setattr("bedplate.hal.bench.time.monotonic_ns", lambda: next(clock))
    assert bench._cffi(device, 2).ours == [4.0, 1.0]


@pytest.mark.parametrize(("quantity", "peer"), [("_copy", "memmove"), ("_fill", "memset")])
def test_a_peer_moves_as_much(
    device: Device, queue: Queue, monkeypatch: pytest.MonkeyPatch, quantity: str, peer: str
) -> None:
    """In each round, and in the one that is forgotten."""
    sizes: list[int] = []
    monkeypatch.setattr(bench, "BANDWIDTH_BYTES", 4096)
    name = f"bedplate.hal.bench.ctypes.{peer}"
    monkeypatch.setattr(name, lambda to, source, size: sizes.append(size))
    made = getattr(bench, quantity)(device, queue, 2, 1)
    assert sizes == [4096] * 3
    assert len(made.ours) == 2
    assert len(made.peer or ()) == 2


def test_what_cannot_run_says_why() -> None:
    """A device without timestamps has no bandwidth; one that is not the first no C program."""
    index = next(
        i.index
        for i in device_infos(load("liar"))
        if i.properties["liar.lie"] == "hidden_timestamp"
    )
    with open_device(f"liar:{index}", trust_claims=True) as device:
        found = {one.name: one for one in bench_device(device, rounds=2)}
    assert found["call_cffi"].status == "ok"
    for name in ("copy_bandwidth", "fill_bandwidth"):
        assert found[name].status == "not_run"
        assert "no certified timestamps" in (found[name].reason or "")
    assert found["call_c"].status == "not_run"


def test_the_performance_tier_fills_the_certificate() -> None:
    """With what was shown to work only; other tiers say that they measure nothing."""
    backend = load("cpu")
    (info,) = device_infos(backend)
    cases = select(info.claims, "performance")
    assert cases == select(info.claims, "full")
    passed = [CaseResult(case.name, case.capability, "pass", None) for case in cases]
    records = conform._performance(backend, info, cases, passed)
    made = certificate.make(backend, info, "performance", cases, passed, records)
    assert {record["name"] for record in made["performance"]} == set(PEERS)
    assert "performance_reason" not in made
    failed = [
        CaseResult(r.name, r.capability, "fail", "x") if r.capability == "timestamp" else r
        for r in passed
    ]
    records = conform._performance(backend, info, cases, failed)
    status = {record["name"]: record["status"] for record in records}
    assert status["copy_bandwidth"] == "not_run"
    assert status["call_c"] == "ok"
    full = certificate.make(backend, info, "full", cases, passed)
    assert full["performance"] == []
    assert "measures nothing" in full["performance_reason"]
