"""Wrong input at every command: one clear sentence on stderr, the documented exit code.

Most commands are called in this process, which starts one all the same where a model
is loaded; what differs for a person is tried once.
"""

from __future__ import annotations

import logging
import pickle
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import bedplate
from tests.serving.files import write_folder, write_gguf

from bedplate.cli.main import main
from bedplate.core.logging import ROOT
from bedplate.orchestrator.api import Platform


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, certificates: Path) -> Iterator[dict[str, str]]:
    """Wrong things to give, by name."""
    root = tmp_path_factory.mktemp("wrong")
    good = write_gguf(root / "good.gguf", kind="Q8_0")
    cut = root / "cut.gguf"
    cut.write_bytes(good.read_bytes()[: good.stat().st_size // 2])
    other = write_gguf(root / "other.gguf", architecture="gpt2")
    noise = root / "noise.gguf"
    noise.write_bytes(b"hello" * 100)
    empty = root / "empty.gguf"
    empty.touch()
    tar = root / "model.pt"
    tar.write_bytes(pickle.dumps([1]))
    folder = write_folder(root / "folder")
    (folder / "config.json").write_text("{")
    (root / "void").mkdir()
    key = root / "key.toml"
    key.write_text("[gateway]\nprot = 1\n")
    value = root / "value.toml"
    value.write_text('[gateway]\nport = "x"\n')
    section = root / "section.toml"
    section.write_text("[gatway]\nport = 1\n")
    toml = root / "broken.toml"
    toml.write_text("[gateway\n")
    file = root / "file"
    file.touch()
    damaged = root / "damaged"
    damaged.mkdir()
    (damaged / "keys.json").write_text("{")
    shutil.copytree(certificates, root / "data" / certificates.name)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield {
            "good": str(good),
            "cut": str(cut),
            "other": str(other),
            "noise": str(noise),
            "empty": str(empty),
            "pickle": str(tar),
            "folder": str(folder),
            "void": str(root / "void"),
            "key": str(key),
            "value": str(value),
            "section": str(section),
            "toml": str(toml),
            "file": str(file),
            "damaged": str(damaged),
            "port": str(taken.getsockname()[1]),
            "data": str(root / "data"),
        }


BOTH = [
    # what is given, the exit code, and what the sentence must say
    ("/nowhere.gguf", {}, 2, "no model '/nowhere.gguf'.*smollm2"),
    ("{cut}", {}, 2, r"cut\.gguf is truncated"),
    ("{noise}", {}, 2, "not a GGUF file"),
    ("{empty}", {}, 2, "truncated: 0 bytes"),
    ("{other}", {}, 2, "architecture 'gpt2', which is not served"),
    ("{pickle}", {}, 2, "is a pickle.*convert it to safetensors or GGUF"),
    ("{folder}", {}, 2, r"config\.json"),
    ("{void}", {}, 2, "void"),
    ("{good} --port {port}", {}, 3, "port {port} of 127.0.0.1 is in use; .*--port"),
    ("{good} --port 70000", {}, 2, "70000 is not a port; give one from 1 to 65535"),
    ("{good} --port -1", {}, 2, "-1 is not a port; give one from 1 to 65535"),
    ("{good} --host 203.0.113.1", {}, 2, "cannot listen on 203.0.113.1"),
    ("{good} --device tpu", {}, 3, "tpu"),
    ("{good} --device cpu:7", {}, 2, "no device 7"),
    ("{good} --device cpu:x", {}, 2, "'cpu:x' is not a device"),
    ("{good} --max-model-len 99999999", {}, 2, "--max-model-len is 99999999"),
    ("{good} --kv-memory-bytes 1000", {}, 2, "pool of 1000 bytes"),
    ("{good} --dtype int3", {}, 2, "--dtype: invalid choice: 'int3'"),
    ("{good} --port x", {}, 2, "--port: invalid int value: 'x'; see `bedplate VERB --help`"),
    ("{good} --no-such-flag", {}, 2, "unrecognized arguments: --no-such-flag"),
    ("{good} --config /nowhere.toml", {}, 2, "file /nowhere.toml does not exist"),
    ("{good} --config {key}", {}, 2, "unknown key 'prot'; the nearest is 'port'"),
    ("{good} --config {value}", {}, 2, r"\[gateway\] port: 'x' is not valid"),
    ("{good} --config {section}", {}, 2, "unknown key 'gatway'; the nearest is 'gateway'"),
    ("{good} --config {toml}", {}, 2, "is not valid TOML"),
    ("{good}", {"BEDPLATE_SERVING_BLOCKSIZE": "1"}, 2, "'blocksize'; the nearest is 'block_size'"),
    ("{good}", {"BEDPLATE_CPU_ISA": "sse"}, 3, "BEDPLATE_CPU_ISA=sse"),
    ("{good}", {"BEDPLATE_LOG": "loud"}, 2, "BEDPLATE_LOG is 'loud'; use one of debug"),
    ("{good} --data-dir {file}", {}, 2, "cannot write in the folder {file}.*--data-dir"),
    ("{good} --data-dir {file}/x", {}, 2, "cannot write in the folder {file}/x"),
    ("{good} --data-dir /proc", {}, 3, "cannot write in the folder /proc: .*--data-dir"),
    ("{good} --data-dir /proc/x", {}, 3, "cannot write in the folder /proc/x"),
    ("{good} --data-dir {damaged}", {}, 2, "does not hold API keys.*remove it"),
]
# `serve` reads its own section only; keys of the gateway's are the platform's business.
OF_UP = ("{key}", "{value}")
# Found by an engine, which `up` starts for it, and whose words it gives on: `serve` tries them
# all, `up` a file and a flag. Another supervisor ends at once, of its environment.
STARTED = ("{cut}", "{good} --kv-memory-bytes 1000", "BEDPLATE_LOG")
OF_SERVE = ("{noise}", "{empty}", "{other}", "{pickle}", "{folder}", "{void}", "--max-model-len")
BY_VERB = [
    (verb, *case)
    for case in BOTH
    for verb, left in (("serve", OF_UP), ("up", OF_SERVE))
    if not any(name in case[0] for name in left)
]


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    """A verb sends logs to the stderr of its time."""
    logger = logging.getLogger(ROOT)
    handlers, propagate = list(logger.handlers), logger.propagate
    yield
    logger.handlers[:], logger.propagate = handlers, propagate


@pytest.mark.usefixtures("logging_as_before")
@pytest.mark.parametrize(("verb", "given", "env", "code", "sentence"), BY_VERB)
def test_what_starts_a_model_refuses_wrong_input(
    place: dict[str, str],
    verb: str,
    given: str,
    env: dict[str, str],
    code: int,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Both ways to start one say the same, whoever finds the fault; nothing stays behind."""
    arguments = given.format(**place).split()
    if "--port" not in given:
        arguments += ["--port", "0"]
    if "--data-dir" not in given:
        arguments += ["--data-dir", place["data"]]
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    done = in_here([verb, *arguments], monkeypatch, capsys)
    for name, value in {**place, "VERB": verb}.items():
        sentence = sentence.replace("{" + name + "}", value).replace("VERB", verb)
    check(done, code, sentence)
    lines = done.stdout.splitlines()  # the hardware, and that it starts if it does
    assert all(re.match("(uses|found|without|starting) ", line) for line in lines), lines
    starts = verb == "up" and (given in STARTED or bool(env.keys() & set(STARTED)))
    assert sum(line.startswith("starting ") for line in lines) == starts, lines
    assert not Path(place["data"], "keys.json").exists()


def in_here(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> subprocess.CompletedProcess[str]:
    """A command in this process, as if it were one of its own."""
    monkeypatch.setenv("BEDPLATE_DATA_DIR", "")  # `main` sets it for its children
    before = signal.getsignal(signal.SIGTERM)
    try:
        code = main(arguments)
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        signal.signal(signal.SIGTERM, before)
    out, err = capsys.readouterr()
    return subprocess.CompletedProcess(arguments, code, out, err)


def check(done: subprocess.CompletedProcess[str], code: int, sentence: str) -> None:
    """Exit code, one sentence, no traceback."""
    lines = done.stderr.splitlines()
    assert done.returncode == code, done.stderr
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("bedplate")
    assert re.search(sentence, lines[0]), lines[0]
    assert "Traceback" not in done.stderr + done.stdout
    assert "internal error" not in done.stderr


@pytest.mark.parametrize(
    ("command", "code", "sentence"),
    [
        (
            "nothing",
            2,
            "unknown verb 'nothing'; known are chat, doctor, down, hal, memory, serve, s",
        ),
        ("statsu", 2, "unknown verb 'statsu'; the nearest is 'status'"),
        ("gatewai", 2, "unknown verb 'gatewai'; known are chat"),
        ("hal lst", 2, "unknown verb 'lst'; the nearest is 'list'; see `bedplate hal --help`"),
        ("hal nothing", 2, "unknown verb 'nothing'; known are bench, conform, doctor, list, new"),
        ("--port 1", 2, "bedplate --help"),
        (
            "status --data-dir {data}",
            3,
            "no platform runs on .*/data; start one with `bedplate up --data-dir .*/data`",
        ),
        ("status --verbose", 2, "unrecognized arguments: --verbose"),
        ("chat --data-dir {data}", 3, "no platform runs on .*/data; start one with `bedplate up"),
        ("chat Hi --data-dir {data}", 3, "no platform runs on"),
        (
            "chat Hi --temperature -1",
            2,
            "--temperature -1 is not a temperature; give a number from 0 to 2",
        ),
        ("chat Hi --temperature nan", 2, "--temperature nan is not a temperature"),
        ("chat Hi --max-tokens 0", 2, "--max-tokens 0 is no answer; give 1 or more"),
        ("chat Hi --max-tokens -7", 2, "--max-tokens -7 is no answer"),
        ("chat Hi --seed x", 2, "--seed: invalid int value: 'x'"),
        ("chat Hi there --data-dir {data}", 3, "no platform runs on"),
        ("gateway tiny --host 127.0.0.1 --port 0 --data-dir {data}", 3, "no platform runs on"),
        ("serve", 2, "required: model"),
        ("serve {good} --uds /nowhere/s --data-dir {data}2", 3, "cannot listen on /nowhere/s"),
        ("up {good} --foreground --demo", 2, "not allowed with argument"),
        ("doctor --no-such-flag", 2, "unrecognized arguments"),
    ],
)
@pytest.mark.usefixtures("logging_as_before")
def test_every_other_command_refuses_wrong_input(
    place: dict[str, str],
    command: str,
    code: int,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Unknown verbs and flags, and what needs a running platform."""
    arguments = command.format(**place).split()
    check(in_here(arguments, monkeypatch, capsys), code, sentence)


def test_a_command_of_its_own_process_ends_with_the_code(place: dict[str, str]) -> None:
    """What the others call in this process, once as a person does."""
    done = bedplate("status", "--data-dir", place["data"])
    check(done, 3, "no platform runs on .*/data; start one with `bedplate up --data-dir .*/data`")


@pytest.mark.parametrize("message", ["", "  ", "\n"])
def test_an_empty_message_is_refused(
    place: dict[str, str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before a platform is looked for: there is nothing to ask it."""
    arguments = ["chat", message, "--data-dir", place["data"]]
    check(in_here(arguments, monkeypatch, capsys), 2, "the message is empty; say")


def test_down_without_a_platform_is_done(place: dict[str, str]) -> None:
    """What is asked for is already so."""
    done = bedplate("down", "--data-dir", place["data"])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("no platform runs on")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("Hi", "--temperature", "1000"), "temperature"),
        (("a" * 20_000,), "prompt has 2.* tokens, this model's context holds 8192"),
    ],
)
def test_a_wrong_question_is_the_servers_sentence(
    plate: Platform, arguments: tuple[str, ...], sentence: str
) -> None:
    """Exit code 2, as for what the command refuses by itself."""
    check(bedplate("chat", *arguments, "--data-dir", plate.data), 2, sentence)


def test_another_model_than_the_one_that_runs_is_refused(
    plate: Platform, place: dict[str, str]
) -> None:
    """`up` with another model says what runs and how to stop it."""
    done = bedplate("up", place["good"], "--data-dir", plate.data, "--port", 0)
    down = f"`bedplate down --data-dir {plate.data}`"
    check(done, 2, f"tiny.gguf runs already at http.*, not .*/good.gguf; stop it with {down} first")


def test_another_port_than_the_one_that_answers_is_refused(plate: Platform) -> None:
    """`up --port` says where the platform runs instead of leaving the wish out."""
    done = bedplate("up", "--data-dir", plate.data, "--port", 9)
    check(done, 2, f"tiny.gguf runs already at {plate.url}, not on port 9; stop it with `bedplate")


def test_engine_flags_of_a_platform_that_runs_are_said_to_do_nothing(plate: Platform) -> None:
    """The command succeeds, since the platform is there, but not in silence."""
    done = bedplate("up", "--data-dir", plate.data, "--max-num-seqs", 3)
    assert done.returncode == 0
    assert "it keeps the engine flags it was started with, until `bedplate down" in done.stdout
