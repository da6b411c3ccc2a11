"""A real platform over a tiny random model, and what tests look at from outside."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import openai
import psutil
import pytest
from tests.serving.files import TINY, write_gguf

from bedplate.core import keyfile, keys
from bedplate.core.paths import run_dir
from bedplate.hal.api import open_device
from bedplate.orchestrator.api import Platform

SMALL = ("--max-num-seqs", "32", "--kv-memory-bytes", str(8 << 20))
MESSAGES = [{"role": "user", "content": "hello"}]
LOGS = {"engine.log", "gateway.log", "supervisor.log"}


@contextlib.contextmanager
def clean_environment() -> Iterator[None]:
    """No configuration of the person who runs the tests; invariants at every step."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("BEDPLATE_")]:
            patch.delenv(name)
        patch.setenv("BEDPLATE_CHECK", "1")
        yield


@pytest.fixture(scope="module", autouse=True)
def own_environment() -> Iterator[None]:
    """For these tests alone: what comes after them in a session has the environment as it was."""
    with clean_environment():
        yield


@pytest.fixture(scope="session")
def tiny_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny random model as a GGUF file, with a context that holds long streams."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TINY, "context", 8192)
        return write_gguf(tmp_path_factory.mktemp("models") / "tiny.gguf", kind="Q8_0")


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the first open of the device leaves: a second and a half of cases, run once."""
    folder = tmp_path_factory.mktemp("certified")
    with clean_environment(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("BEDPLATE_DATA_DIR", str(folder))
        open_device("cpu").close()
    return folder / "certificates"


@pytest.fixture
def certified(tmp_path: Path, certificates: Path) -> None:
    """The test's folder is a data directory in which the device was opened before."""
    shutil.copytree(certificates, tmp_path / certificates.name)


@pytest.fixture(scope="session")
def plate(
    tiny_file: Path, certificates: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Platform]:
    """A platform that tests share, on a new data directory; it stays as it is."""
    data = tmp_path_factory.mktemp("plate")
    shutil.copytree(certificates, data / certificates.name)
    with contextlib.ExitStack() as undo:
        with clean_environment():
            found = Platform.up(str(tiny_file), data_dir=data, port=0, engine_flags=SMALL)
        yield undo.enter_context(found)


@pytest.fixture
def own_plate(
    request: pytest.FixtureRequest, certified: None, tiny_file: Path, tmp_path: Path
) -> Iterator[Platform]:
    """A platform that one test may break; its parameter is `hang_after_s`."""
    hang_after_s = getattr(request, "param", 10.0)  # a busy machine is not a hung process
    with Platform.up(
        str(tiny_file),
        data_dir=tmp_path,
        port=0,
        engine_flags=SMALL,
        hang_after_s=hang_after_s,
    ) as found:
        yield found


def client(plate: Platform, key: str | None = None) -> openai.OpenAI:
    """An openai client that does not try again."""
    chosen = key or plate.key
    assert chosen is not None
    return openai.OpenAI(base_url=plate.base_url, api_key=chosen, max_retries=0, timeout=30)


def part(plate: Platform, name: str) -> psutil.Process:
    """The process of one part of the platform."""
    (found,) = [child for child in plate.status()["children"] if child["name"] == name]
    return psutil.Process(found["pid"])


def supervisor(plate: Platform) -> psutil.Process:
    """The process that looks after the others."""
    parent = part(plate, "gateway").parent()
    assert parent is not None
    return parent


def processes_of(data: Path) -> list[psutil.Process]:
    """Every process that was started with this data directory, zombies left out."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if str(data) in (process.info["cmdline"] or []):
            found.append(process)
    return found


def run_files(data: Path) -> set[str]:
    """What lies in the run folder, without logs of earlier lives."""
    return {path.name for path in run_dir(data).iterdir() if not path.name.endswith(".1")}


def until(condition: Callable[[], bool], what: str, patience_s: float = 40.0) -> None:
    """Wait for `condition`; the patience only ends a test that would hang."""
    give_up = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < give_up, f"waited in vain until {what}"
        time.sleep(0.02)


def store_keys(data: Path, *names: str) -> list[str]:
    """API keys for a data directory on which nothing runs yet."""
    data.mkdir(parents=True, exist_ok=True)
    made = {name: keys.make() for name in names}
    keyfile.write(data / keyfile.FILE, {name: keys.hash_key(key) for name, key in made.items()})
    return list(made.values())
