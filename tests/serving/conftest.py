"""Engines that tests share: loading is the slow part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.serving.files import write_gguf
from tests.serving.running import Running, running

from bedplate.serving.api import Engine, EngineOptions, Precision

SMALL = EngineOptions(max_model_tokens=128, max_running=8, max_batched_tokens=32)


@pytest.fixture(scope="session")
def tiny_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny random model as a GGUF file with Q8_0 matrices."""
    return write_gguf(tmp_path_factory.mktemp("models") / "tiny.gguf", kind="Q8_0")


@pytest.fixture
def tiny(tiny_path: Path) -> Iterator[Engine]:
    """An engine over the tiny model, checked after each step."""
    with Engine(str(tiny_path), SMALL, name="tiny") as engine:
        engine.check_every_step = True
        yield engine


@pytest.fixture(scope="session")
def shared(tiny_path: Path) -> Iterator[Engine]:
    """One for all tests that leave it as it is and count nothing."""
    with Engine(str(tiny_path), SMALL, name="tiny") as engine:
        engine.check_every_step = True
        yield engine


@pytest.fixture(scope="session")
def default_model() -> Iterator[Engine]:
    """The default model, quantized as in its file."""
    with Engine("smollm2", EngineOptions(max_model_tokens=2100, max_running=32)) as engine:
        yield engine


@pytest.fixture
def server(tiny: Engine) -> Iterator[Running]:
    """The tiny model, served."""
    with running(tiny) as found:
        yield found


__all__ = ["SMALL", "Precision"]
