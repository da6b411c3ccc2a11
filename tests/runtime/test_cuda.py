"""Allocator, scheduler and graphs on cuda: on the HAL's stand-in everywhere, really by a GPU.

The device's memory is mapped pieces, its graphs are its own, and its timelines move by
themselves; nothing else here has all three.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.runtime.cuda import PROGRAMS, check

BUILD = Path(__file__).parents[1] / "hal" / "native" / "cuda" / "build.sh"


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stand-in as libcuda.so.1."""
    folder = tmp_path_factory.mktemp("cuda")
    subprocess.run([BUILD, folder], check=True)
    return folder


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_runtime_works_on_the_stand_in(name: str, fake: Path) -> None:
    """Graphs that the device runs itself; order, failures and resets; remap, fences and seal."""
    check(name, fake)


@pytest.mark.device
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_runtime_works_on_the_device(name: str) -> None:
    """The same programs, on this machine's own driver."""
    check(name)
