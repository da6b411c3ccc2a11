import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bedplate.core import events
from bedplate.core.clock import FakeClock
from bedplate.core.errors import UsageError
from bedplate.core.events import EventLogError, FileEventLog

KIND = "serving.request_finished"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the log lies."""
    return tmp_path / "events.jsonl"


def test_events_come_back_in_order(path: Path) -> None:
    """seq counts from 0 and reading may start anywhere."""
    with FileEventLog(path, clock=FakeClock(wall_ns=9)) as log:
        assert [log.append(KIND, f"r{n}", {"n": n}, "t") for n in range(3)] == [0, 1, 2]
        found = list(log.read(1))
    assert [(e.seq, e.subject, e.data, e.time_ns, e.trace_id) for e in found] == [
        (1, "r1", {"n": 1}, 9, "t"),
        (2, "r2", {"n": 2}, 9, "t"),
    ]


def test_seq_goes_on_after_reopening(path: Path) -> None:
    """A restart neither repeats nor skips a number."""
    for expected in range(3):
        with FileEventLog(path) as log:
            assert log.append(KIND, "r", {}) == expected
            assert log.torn_offset is None


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, 400))
def test_any_torn_tail_is_cut_to_whole_events(path: Path, cut: int) -> None:
    """A crash at any byte loses at most the event being written."""
    path.unlink(missing_ok=True)
    ends = []
    with FileEventLog(path, clock=FakeClock()) as log:
        for number in range(3):
            log.append(KIND, "r", {"n": number})
            ends.append(path.stat().st_size)
    whole = path.read_bytes()
    cut = min(cut, len(whole))
    path.write_bytes(whole[:cut])
    kept = sum(end <= cut for end in ends)
    assert [event.seq for event in events.read(path)] == list(range(kept))
    with FileEventLog(path) as log:
        expected = None if cut in (0, *ends) else (0, *ends)[kept]
        assert log.torn_offset == expected
        assert log.append(KIND, "r", {}) == kept
        assert [event.seq for event in log.read()] == list(range(kept + 1))


def test_damage_in_the_middle_is_not_a_torn_tail(path: Path) -> None:
    """Cutting there would throw away good events, so it is refused."""
    with FileEventLog(path) as log:
        for _ in range(2):
            log.append(KIND, "r", {})
    path.write_bytes(b"x" + path.read_bytes())
    with pytest.raises(EventLogError, match="damaged at byte 0"):
        FileEventLog(path)


def test_a_log_has_one_writer(path: Path) -> None:
    """A second writer would interleave sequence numbers."""
    with FileEventLog(path), pytest.raises(EventLogError, match="another process"):
        FileEventLog(path)


def test_unknown_fields_are_ignored(path: Path) -> None:
    """A newer program of the same major may add fields."""
    with FileEventLog(path) as log:
        log.append(KIND, "r", {})
    raw = json.loads(path.read_text())
    path.write_text(json.dumps(raw | {"later": 1}) + "\n")
    assert [event.seq for event in events.read(path)] == [0]


@pytest.mark.parametrize(
    "kind", ["", "serving", "serving.finished", "Serving.request_done", "a.b c"]
)
def test_a_kind_has_one_shape(path: Path, kind: str) -> None:
    """<system>.<noun>_<past verb>; anything else writes nothing."""
    with FileEventLog(path) as log:
        with pytest.raises(UsageError, match="is not an event kind"):
            log.append(kind, "r", {})
        assert list(log.read()) == []


def test_data_that_json_cannot_hold_writes_nothing(path: Path) -> None:
    """A failed append leaves the log as it was, seq included."""
    with FileEventLog(path) as log:
        with pytest.raises(TypeError):
            log.append(KIND, "r", {"x": object()})
        with pytest.raises(ValueError, match="not JSON compliant"):
            log.append(KIND, "r", {"x": float("nan")})
        assert log.append(KIND, "r", {}) == 0


def test_a_durable_log_reads_the_same(path: Path) -> None:
    """Durability changes when it returns, not what is stored."""
    with FileEventLog(path, durable=True) as log:
        log.append(KIND, "r", {"a": [1, None]})
    assert [event.data for event in events.read(path)] == [{"a": [1, None]}]
