"""The platform from outside: up, found again, asked by the openai client, down."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
from pathlib import Path

import httpx
import openai
import pytest
from tests.orchestrator.conftest import (
    LOGS,
    MESSAGES,
    SMALL,
    client,
    processes_of,
    run_files,
    supervisor,
    until,
)
from tests.serving.files import write_gguf

from bedplate.core import keyfile, keys
from bedplate.core.errors import EnvironmentLacks, UsageError
from bedplate.core.paths import run_dir
from bedplate.orchestrator import platform as module
from bedplate.orchestrator import record
from bedplate.orchestrator.api import NotRunning, Platform, StartFailed
from bedplate.orchestrator.launch import Launch, wait_ready
from bedplate.serving.api import ModelFileError


def test_a_second_up_finds_the_first(plate: Platform, tiny_file: Path) -> None:
    """It says where the first runs, starts nothing, has no key to show, and stops nothing."""
    before = supervisor(plate).pid
    with Platform.up(str(tiny_file), data_dir=plate.data, port=0) as again:
        assert (again.url, again.model) == (plate.url, "tiny")
        assert (again.started_here, again.key) == (False, None)
    assert supervisor(plate).pid == before


@pytest.mark.usefixtures("certified")
def test_two_ups_at_once_end_as_one_platform(tiny_file: Path, tmp_path: Path) -> None:
    """Both return the same platform; one of them started it, one has the key."""
    found: list[Platform] = []

    def start() -> None:
        found.append(Platform.up(str(tiny_file), data_dir=tmp_path, port=0, engine_flags=SMALL))

    threads = [threading.Thread(target=start) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        assert found[0].url == found[1].url
        assert sorted(plate.started_here for plate in found) == [False, True]
        (key,) = [plate.key for plate in found if plate.key is not None]
        with client(found[0], key) as api:
            assert api.models.list().data[0].id == "tiny"
    finally:
        for plate in found:
            plate.down()


@pytest.mark.usefixtures("certified")
@pytest.mark.parametrize("by", ["environment", "hand"])
def test_a_key_is_shown_only_if_the_faster_start_takes_it(
    tiny_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """One with a key in its environment does not, and then the key is gone; a supervisor that
    someone started by hand reads the keys of the folder."""
    started, given = module.started, keys.make()
    first: list[Platform] = []

    def overtaken(launch: Launch) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
        monkeypatch.setattr(module, "started", started)
        if by == "environment":
            monkeypatch.setenv("BEDPLATE_API_KEY", given)
            first.append(up())
            monkeypatch.delenv("BEDPLATE_API_KEY")
        else:
            process = launch.start()
            found = wait_ready(tmp_path, process, lambda text: None)
            first.append(Platform(tmp_path, found.url, found.model, None, True, process))
        return started(launch)

    def up() -> Platform:
        return Platform.up(str(tiny_file), data_dir=tmp_path, port=0, engine_flags=SMALL)

    monkeypatch.setattr(module, "started", overtaken)
    try:
        second = up()
        assert (second.started_here, second.url) == (False, first[0].url)
        assert (second.key is None) is (by == "environment")
        assert (tmp_path / keyfile.FILE).exists() is (by == "hand")
        with client(second, second.key or given) as api:
            assert api.models.list().data[0].id == "tiny"
    finally:
        for plate in first:
            plate.down()


@pytest.mark.usefixtures("certified")
def test_down_leaves_no_process_socket_or_lock(tiny_file: Path, tmp_path: Path) -> None:
    """Only keys and logs stay; the port is free; a second down is fine."""
    plate = Platform.up(str(tiny_file), data_dir=tmp_path, port=0, engine_flags=SMALL)
    top = supervisor(plate)
    processes = [top, *top.children(recursive=True)]
    assert len(processes) >= 3
    plate.down()
    assert not [process for process in processes if process.is_running()]
    assert run_files(tmp_path) == LOGS
    with pytest.raises(NotRunning, match="bedplate up"):
        Platform.find(tmp_path)
    with pytest.raises(NotRunning):
        plate.internal_key  # noqa: B018 (reading it is the test)
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(plate.url.rpartition(":")[2]))) != 0
    plate.down()


def test_the_openai_client_is_served(plate: Platform) -> None:
    """Whole, streamed, stopped, several answers, seeded: parsed by the client's types."""
    fixed = {"model": "tiny", "messages": MESSAGES, "max_tokens": 12, "temperature": 0}
    with client(plate) as api:
        whole = api.chat.completions.create(**fixed)
        text = whole.choices[0].message.content
        options = {"stream": True, "stream_options": {"include_usage": True}}
        chunks = list(api.chat.completions.create(**fixed, **options))
        assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == text
        assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
        stop = text[3:6]
        cut = api.chat.completions.create(**fixed, stop=[stop]).choices[0]
        assert (cut.message.content, cut.finish_reason) == (text[: text.index(stop)], "stop")
        several = {**fixed, "n": 3, "temperature": 1.5, "seed": 5}
        answers = [api.chat.completions.create(**several) for _ in range(2)]
        drawn, again = ([c.message.content for c in answer.choices] for answer in answers)
        assert len(set(drawn)) == 3
        assert drawn == again
        plain = {"model": "tiny", "prompt": "hello", "max_tokens": 4, "temperature": 0}
        pieces = api.completions.create(**plain, stream=True)
        joined = "".join(c.choices[0].text for c in pieces)
        assert joined == api.completions.create(**plain).choices[0].text
        assert [m.id for m in api.models.list()] == ["tiny"]
        assert api.models.retrieve("tiny").owned_by == "bedplate"
        with pytest.raises(openai.NotFoundError, match="'tiny' is"):
            api.models.retrieve("gpt")


def test_a_port_in_use_is_said_before_anything_starts(tiny_file: Path, tmp_path: Path) -> None:
    """Exit code 3, port and remedy named; no key is made that nobody saw."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(EnvironmentLacks, match=f"port {port} of 127.0.0.1 is in use; .*--port"):
            Platform.up(str(tiny_file), data_dir=tmp_path, port=port)
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_not_there_is_said_before_anything_starts(tmp_path: Path) -> None:
    """Exit code 2, with what could be given instead."""
    with pytest.raises(ModelFileError, match=r"no model '/nowhere.gguf'.*smollm2"):
        Platform.up("/nowhere.gguf", data_dir=tmp_path, port=0)
    assert list(tmp_path.iterdir()) == []


def test_a_data_directory_too_long_for_a_socket_is_refused(tiny_file: Path, tmp_path: Path) -> None:
    """Unix sockets have short paths; the sentence says by how much it is over."""
    data = tmp_path / ("x" * (200 - len(str(tmp_path))))
    over = len(str(data)) + len("/run/engine.sock") - 107
    with pytest.raises(UsageError, match=f"is {over} bytes too long"):
        Platform.up(str(tiny_file), data_dir=data, port=0)


def test_an_engine_that_refuses_its_model_ends_up_at_once(tmp_path: Path) -> None:
    """The engine's own sentence and exit code, after one try; nothing is left but logs."""
    whole = write_gguf(tmp_path / "whole.gguf").read_bytes()
    cut, data = tmp_path / "cut.gguf", tmp_path / "data"
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StartFailed, match=r"the engine does not start: .*/cut.gguf is tr") as told:
        Platform.up(str(cut), data_dir=data, port=0)
    assert told.value.exit_code == UsageError.exit_code
    assert (run_dir(data) / "supervisor.log").read_text().count("child=engine pid=") == 1
    assert processes_of(data) == []
    assert run_files(data) == LOGS
    assert not (data / "keys.json").exists()


@pytest.mark.parametrize(("code", "asked"), [(0, True), (1, False), (3, False)])
def test_an_end_that_nobody_asked_for_is_told_apart(tmp_path: Path, code: int, asked: bool) -> None:
    """By the supervisor's exit code."""
    import subprocess
    import sys

    ended = subprocess.Popen([sys.executable, "-c", f"raise SystemExit({code})"])
    assert Platform(tmp_path, "http://127.0.0.1:1", "m", None, True, ended).wait() is asked


@pytest.mark.usefixtures("certified")
def test_a_platform_goes_with_the_process_it_was_given(tiny_file: Path, tmp_path: Path) -> None:
    """`parent`: when that process ends, supervisor, engine and gateway end too."""
    import subprocess
    import sys

    code = (
        "import os; from bedplate.orchestrator.api import Platform; "
        f"Platform.up({str(tiny_file)!r}, data_dir={str(tmp_path)!r}, port=0, "
        f"engine_flags={SMALL!r}, parent=os.getpid())"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    until(lambda: processes_of(tmp_path) == [], "every process of the platform is gone")


@pytest.mark.usefixtures("certified")
def test_up_waits_for_a_platform_that_is_going_away(tiny_file: Path, tmp_path: Path) -> None:
    """It does not say that one runs which will be gone in a moment: it starts the next."""
    plate = Platform.up(str(tiny_file), data_dir=tmp_path, port=0, engine_flags=SMALL)
    before = supervisor(plate)
    before.terminate()
    until(lambda: (told := record.read(tmp_path)) is None or told.stopping, "it says so")
    assert not Platform.runs(tmp_path)
    with Platform.up(str(tiny_file), data_dir=tmp_path, port=0, engine_flags=SMALL) as after:
        assert record.start_ticks(before.pid) is None
        assert after.started_here
        assert httpx.get(f"{after.url}/ready").status_code == 200
    plate.down()  # collects its process


@pytest.mark.usefixtures("certified")
def test_up_returns_when_the_start_of_another_is_ready(tiny_file: Path, tmp_path: Path) -> None:
    """A platform that is found is one that answers."""
    made: list[Platform] = []

    def start() -> None:
        made.append(Platform.up(str(tiny_file), data_dir=tmp_path, port=0, engine_flags=SMALL))

    first = threading.Thread(target=start)
    first.start()
    until(lambda: record.read(tmp_path) is not None, "the supervisor runs")
    found = Platform.up(data_dir=tmp_path)
    try:
        assert not found.started_here
        assert httpx.get(f"{found.url}/ready").status_code == 200
    finally:
        first.join()
        made[0].down()


def test_no_part_runs_a_module_of_the_working_directory(
    tiny_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Started in a model's folder: supervisor, gateway, engine and template keep to their own."""
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("queue", "jinja2", "json", "bedplate"):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a')\n")
    monkeypatch.chdir(folder)
    data = tmp_path / "data"
    with (
        Platform.up(str(tiny_file), data_dir=data, port=0, engine_flags=SMALL) as found,
        client(found) as api,
    ):
        assert api.chat.completions.create(model="tiny", messages=MESSAGES, max_tokens=2).usage
    assert not (tmp_path / "ran").exists()
