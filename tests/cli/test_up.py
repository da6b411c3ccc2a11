"""`up`, `status`, `chat` and `down` as a person uses them, and Ctrl-C on a real terminal."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import bedplate
from tests.cli.terminal import Terminal
from tests.orchestrator.conftest import MESSAGES, SMALL, client, processes_of, until

from bedplate.cli.greeting import greet
from bedplate.orchestrator.api import Platform

UP = [sys.executable, "-m", "bedplate.cli", "up"]


@pytest.mark.timeout(240)  # fifteen commands, each a process
@pytest.mark.usefixtures("certified")
def test_a_platform_from_up_to_down(tiny_file: Path, tmp_path: Path) -> None:
    """Each command says what it did on stdout, nothing on stderr, and exits 0."""
    place = ("--data-dir", tmp_path)

    def run(*arguments: object) -> str:
        done = bedplate(*arguments, *place)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    begun = time.monotonic()
    up = run("up", tiny_file, "--port", 0, *SMALL)
    assert "uses cpu:0: " in up
    assert "starting " in up
    assert "> Name three seas." in up
    assert re.search(r"first token after \d+ ms, \d+ tokens at \d+ tokens/s", up)
    (seconds,) = re.findall(r"tiny answers at http://127.0.0.1:\d+/v1 after (\d+\.\d) s\n", up)
    assert float(seconds) <= time.monotonic() - begun
    key = re.findall(r"API key, shown once: (bp-\S+)", up)[0]
    assert up.count(key) == 2  # and in the example that works as it stands
    assert f"`bedplate down --data-dir {tmp_path}` stops it" in up

    again = run("up")
    assert re.match(r"already running: tiny at http://127.0.0.1:\d+/v1\ncall it with", again)
    demo = run("up", "--demo")
    assert demo.startswith("already running: tiny at ")
    assert "first token after" in demo
    assert "$BEDPLATE_API_KEY" in demo
    assert "export BEDPLATE_API_KEY=" in demo
    anew = f"`rm {tmp_path}/keys.json && bedplate down --data-dir {tmp_path} && bedplate up "
    assert anew in demo
    assert "has stopped" not in demo

    status = run("status")
    assert re.search(r"engine +ready .*\n +gateway +ready", status)
    assert re.search(r"requests +0 running, 0 waiting, 2 done", status)
    assert re.search(r"progress +last step .* ago", status)
    report = json.loads(run("status", "--json"))
    assert [child["state"] for child in report["children"]] == ["ready", "ready"]
    assert report["engine"]["tokens_written"] > 0
    assert all(child["memory_bytes"] > 1 << 20 for child in report["children"])

    assert run("chat", "Hi", "--max-tokens", 4).strip()
    whole = run("chat", "Hi you", "--max-tokens", 4, "--seed", 3)
    assert run("chat", "Hi", "you", "--max-tokens", 4, "--seed", 3) == whole
    told = json.loads(run("chat", "Hi", "--max-tokens", 4, "--seed", 3, "--json"))
    assert told == json.loads(run("chat", "Hi", "--max-tokens", 4, "--seed", 3, "--json")) | {
        name: told[name] for name in ("time_to_first_token_ns", "elapsed_ns")
    }
    assert re.fullmatch(r"stopped tiny at http://127.0.0.1:\d+/v1\n", run("down"))
    assert run("down").startswith("no platform runs on")
    assert processes_of(tmp_path) == []


def test_demo_answers_stops_and_tells_machines_in_json(tiny_file: Path, tmp_path: Path) -> None:
    """stdout is one JSON document; what is for people goes to stderr; nothing runs afterwards,
    no key was made that nothing answers to, and the way to a platform that stays is told."""
    done = bedplate(
        "up", tiny_file, "--demo", "--json", "--port", 0, "--data-dir", tmp_path,
        "--prompt", "he", *SMALL,
    )  # fmt: skip
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert report["model"] == "tiny"
    assert report["started"] is True
    assert report["api_key"] is None
    assert report["completion_tokens"] > 0
    assert report["time_to_first_token_ns"] > 0
    assert "uses cpu:0" in done.stderr
    (again,) = re.findall(r"the demo has stopped; `bedplate (.*)` starts it to stay", done.stderr)
    assert shlex.split(again) == [
        "up", str(tiny_file), "--port=0", "--max-num-seqs=32",
        f"--kv-memory-bytes={8 << 20}", "--data-dir", str(tmp_path),
    ]  # fmt: skip
    assert not (tmp_path / "keys.json").exists()
    assert processes_of(tmp_path) == []


def test_a_question_that_is_refused_costs_only_the_answer(
    plate: Platform, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1 and the server's sentence; a key that was made is shown all the same."""
    long = argparse.Namespace(json=False, prompt="a" * 20_000)
    assert greet(long, plate, ["up"]) == 1
    said = capsys.readouterr().out
    assert "the question was not answered: the prompt has" in said
    assert f"API key, shown once: {plate.key}" in said
    again = bedplate("up", "--demo", "--json", "--prompt", long.prompt, "--data-dir", plate.data)
    assert again.returncode == 1
    assert json.loads(again.stdout)["answer"] is None


@pytest.mark.usefixtures("certified")
def test_sigterm_stops_a_foreground_platform_cleanly(tiny_file: Path, tmp_path: Path) -> None:
    """As a service manager does it: exit code 0, nothing left."""
    command = [*UP, str(tiny_file), "--foreground", "--port", "0", "--data-dir", str(tmp_path)]
    with subprocess.Popen([*command, *SMALL], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "Ctrl-C stops it" in line:
                process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    assert processes_of(tmp_path) == []


@pytest.mark.usefixtures("certified")
def test_up_that_is_told_to_stop_before_it_answers_leaves_nothing(
    tiny_file: Path, tmp_path: Path
) -> None:
    """SIGTERM during the start of a platform that was to stay: no process, no key, no success."""
    command = [*UP, str(tiny_file), "--port", "0", "--data-dir", str(tmp_path), *SMALL]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("starting"):
                process.send_signal(signal.SIGTERM)
        assert process.wait() == 1
    assert processes_of(tmp_path) == []
    assert not (tmp_path / "keys.json").exists()


@pytest.mark.usefixtures("certified")
def test_a_foreground_platform_that_is_killed_is_a_failure(tiny_file: Path, tmp_path: Path) -> None:
    """The supervisor is gone without being asked: exit code 1 and a sentence."""
    command = [*UP, str(tiny_file), "--foreground", "--port", "0", "--data-dir", str(tmp_path)]
    with subprocess.Popen([*command, *SMALL], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "Ctrl-C stops it" in line:
                supervisor = int(json.loads((tmp_path / "run/platform.json").read_text())["pid"])
                os.kill(supervisor, signal.SIGKILL)
        assert process.wait() == 1
    assert "ended by itself" in lines[-1]
    until(lambda: processes_of(tmp_path) == [], "every process is gone")


@pytest.fixture
def foreground(tiny_file: Path, tmp_path: Path) -> Callable[[bool], Terminal]:
    """Starts `up --foreground` on a terminal, by `make` or not."""
    command = [*UP, str(tiny_file), "--foreground", "--port", "0", "--data-dir", str(tmp_path)]

    def start(by_make: bool) -> Terminal:
        if not by_make:
            return Terminal([*command, *SMALL])
        makefile = tmp_path / "Makefile"
        makefile.write_text(f"up:\n\t@exec {shlex.join([*command, *SMALL])}\n")
        return Terminal(["make", "-f", str(makefile), "up"])

    return start


@pytest.mark.usefixtures("certified")
def test_ctrl_c_stops_it_with_one_line(
    foreground: Callable[[bool], Terminal], tmp_path: Path
) -> None:
    """Exit code 0 also of `make`, which would otherwise fail with the interrupt."""
    terminal = foreground(True)
    terminal.expect("Ctrl-C stops it")
    terminal.type("\x03")
    assert terminal.end() == 0, terminal.text
    after = terminal.text.partition("Ctrl-C stops it")[2].replace("^C", "").split("\r\n")
    assert [line for line in after if line] == [
        "stopping; streams that are open may end, Ctrl-C again cuts them"
    ]
    assert processes_of(tmp_path) == []


@pytest.mark.usefixtures("certified")
def test_ctrl_c_while_starting_leaves_nothing(
    foreground: Callable[[bool], Terminal], tmp_path: Path
) -> None:
    """Before it answers: no process, no key that nobody saw, and no success."""
    terminal = foreground(False)
    terminal.expect("starting")
    terminal.type("\x03")
    assert terminal.end() == 1, terminal.text
    assert "stopped before it answered" in terminal.text
    assert "Traceback" not in terminal.text
    assert processes_of(tmp_path) == []
    assert not (tmp_path / "keys.json").exists()


@pytest.mark.usefixtures("certified")
def test_a_second_ctrl_c_cuts_what_is_open(
    foreground: Callable[[bool], Terminal], tmp_path: Path
) -> None:
    """A stream that would go on is ended with an error event at once."""
    terminal = foreground(False)
    terminal.expect("Ctrl-C stops it")
    plate = Platform.find(tmp_path)
    import openai

    with client(plate, plate.internal_key) as api:
        stream = api.chat.completions.create(
            model="tiny", messages=MESSAGES, stream=True, extra_body={"ignore_eos": True}
        )
        pieces = iter(stream)
        next(pieces)
        (engine,) = [c["pid"] for c in plate.status()["children"] if c["name"] == "engine"]
        os.kill(engine, signal.SIGSTOP)  # so that it cannot end in time
        terminal.type("\x03")
        terminal.expect("Ctrl-C again")
        terminal.type("\x03")
        with pytest.raises(openai.APIError, match="engine ended"):
            list(pieces)
    assert terminal.end() == 0, terminal.text
    assert processes_of(tmp_path) == []
