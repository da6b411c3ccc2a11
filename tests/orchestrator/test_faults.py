"""What the platform does when its processes are killed or hang in the middle of work."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
from benchmarks.orchestrator.kill import Footprint, Outcome, Round
from tests.orchestrator.conftest import (
    LOGS,
    MESSAGES,
    SMALL,
    client,
    part,
    run_files,
    supervisor,
    until,
)

from bedplate.core.paths import run_dir
from bedplate.orchestrator import record
from bedplate.orchestrator.api import Platform
from bedplate.orchestrator.probe import Endpoint
from bedplate.orchestrator.record import start_ticks


def check(outcome: Outcome) -> None:
    """Every stream had text and ended with an error event; the gateway never faltered.

    On a busy machine the engine may have dropped a stream that was not read fast enough before
    it was killed; not all of them.
    """
    assert all(outcome.pieces)
    said = set()
    for error in outcome.errors:
        assert isinstance(error, openai.APIError), repr(error)
        assert error.code in ("engine_lost", "answer_lost")
        if error.code == "engine_lost":
            said.add(error.message)
    assert said == {"the engine ended before the answer did"}
    assert outcome.health_statuses == {200}


def rounds(plate: Platform, count: int) -> list[Outcome]:
    """Kill the engine `count` times under load; nothing may be left of any round."""
    before = Footprint.at_rest(plate)
    (first,) = [c["restarts"] for c in plate.status()["children"] if c["name"] == "engine"]
    gateway = part(plate, "gateway").pid
    outcomes = []
    for number in range(1, count + 1):
        outcomes.append(Round(plate).run())
        check(outcomes[-1])
        until(lambda: Footprint.of(plate) == before, f"round {number} left nothing behind")
        (engine,) = [c for c in plate.status()["children"] if c["name"] == "engine"]
        assert (engine["restarts"], engine["last_end"]) == (
            first + number,
            "it was ended by SIGKILL",
        )
    assert part(plate, "gateway").pid == gateway
    return outcomes


@pytest.fixture(scope="module")
def battered(tiny_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A platform that is whole again after each test."""
    data = tmp_path_factory.mktemp("battered")
    with Platform.up(str(tiny_file), data_dir=data, port=0, engine_flags=SMALL) as found:
        yield found


def test_a_killed_engine_ends_streams_cleanly_and_serves_again(battered: Platform) -> None:
    """16 streams, twice: error events, the gateway up all the time, no leak."""
    rounds(battered, 2)


@pytest.mark.soak
def test_twenty_kills_of_the_default_model_leave_nothing(tmp_path: Path) -> None:
    """The same with the real model, twenty times; benchmarks/orchestrator stores the times."""
    with Platform.up(data_dir=tmp_path, port=0) as plate:
        rounds(plate, 20)


@pytest.mark.parametrize("own_plate", [2.0], indirect=True)
def test_a_stopped_engine_is_hung_and_replaced(own_plate: Platform) -> None:
    """SIGSTOP during a stream: the stream ends with an error event, the next request is served;
    the gateway, which cannot reach the engine meanwhile, is not taken for hung itself."""
    gateway, engine = part(own_plate, "gateway").pid, part(own_plate, "engine").pid
    with client(own_plate) as api:
        stream = api.chat.completions.create(
            model="tiny", messages=MESSAGES, stream=True, extra_body={"ignore_eos": True}
        )
        next(iter(stream))
        os.kill(engine, signal.SIGSTOP)
        with pytest.raises(openai.APIError, match="engine ended"):
            list(stream)
        until(lambda: ready(own_plate), "the engine serves again")
        api.chat.completions.create(model="tiny", messages=MESSAGES, max_tokens=1)
    children = {child["name"]: child for child in own_plate.status()["children"]}
    assert children["engine"]["last_end"] == "it did not answer for 2 s"
    assert part(own_plate, "gateway").pid == gateway


@pytest.mark.usefixtures("certified")
def test_a_killed_supervisor_takes_a_hung_engine_and_an_open_stream_along(
    tiny_file: Path, tmp_path: Path
) -> None:
    """SIGKILL while a stream is open and the engine hangs: the engine is killed, and the stream
    ends with an error event; a start that meets the gateway says so, waits, and has its port."""
    plate = Platform.up(str(tiny_file), data_dir=tmp_path, port=0, engine_flags=SMALL)
    port, notes = int(plate.url.rpartition(":")[2]), []
    engine, gateway = part(plate, "engine"), part(plate, "gateway")

    def wake(text: str) -> None:
        if not notes:
            gateway.resume()
        notes.append(text)

    with client(plate) as api:
        stream = api.chat.completions.create(
            model="tiny", messages=MESSAGES, stream=True, extra_body={"ignore_eos": True}
        )
        next(iter(stream))
        top = supervisor(plate)
        engine.suspend()
        gateway.suspend()  # so that the next start meets it for certain
        top.kill()
        until(lambda: record.read(tmp_path) is None, "the supervisor is gone")
        assert (run_dir(tmp_path) / record.ENGINE_SOCKET).exists()
        with Platform.up(
            str(tiny_file), data_dir=tmp_path, port=port, engine_flags=SMALL, on_note=wake
        ) as again:
            assert again.started_here
            assert start_ticks(engine.pid) is None
            assert start_ticks(gateway.pid) is None
            with pytest.raises(openai.APIError, match="engine ended"):
                list(stream)
            assert api.models.list().data[0].id == "tiny"  # the same address and key
    assert not plate.wait()
    assert run_files(tmp_path) == LOGS
    assert f"the gateway, process {gateway.pid}," in notes[0]
    assert notes[0].startswith("waiting until ")


def test_a_killed_gateway_comes_back_and_the_engine_stays(battered: Platform) -> None:
    """The address and the keys are the same afterwards."""
    engine = part(battered, "engine").pid
    gateway = part(battered, "gateway").pid
    os.kill(gateway, signal.SIGKILL)
    until(lambda: ready(battered) and part(battered, "gateway").pid != gateway, "it is back")
    with client(battered) as api:
        api.chat.completions.create(model="tiny", messages=MESSAGES, max_tokens=1)
    assert part(battered, "engine").pid == engine


def test_down_lets_a_stream_end(own_plate: Platform) -> None:
    """A stream that is open when the platform is told to stop gets all of its answer."""
    with client(own_plate) as api:
        stream = api.chat.completions.create(
            model="tiny",
            messages=MESSAGES,
            max_tokens=1000,
            stream=True,
            extra_body={"ignore_eos": True},
        )
        pieces = iter(stream)
        next(pieces)
        supervisor(own_plate).terminate()
        assert list(pieces)[-1].choices[0].finish_reason == "length"
    own_plate.wait()
    assert run_files(own_plate.data) == LOGS


@pytest.mark.soak
def test_down_ends_a_stream_that_takes_too_long(own_plate: Platform) -> None:
    """It gets an error event, not a cut connection, once the drain time is over."""
    with client(own_plate) as api:
        stream = api.chat.completions.create(
            model="tiny", messages=MESSAGES, stream=True, extra_body={"ignore_eos": True}
        )
        pieces = iter(stream)
        next(pieces)
        part(own_plate, "engine").suspend()
        supervisor(own_plate).terminate()
        with pytest.raises(openai.APIError, match="engine ended"):
            list(pieces)


def ready(plate: Platform) -> bool:
    """Whether a request would be served now."""
    endpoint = Endpoint(port=int(plate.url.rpartition(":")[2]), route="/ready")
    return endpoint.ask(5.0) == {"ready": True, "engine": "ready"}
