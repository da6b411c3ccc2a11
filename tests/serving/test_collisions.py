"""The prefix index where much collides: builds of the core with short keys.

With whole keys no test meets a collision. In one build all keys have one of eight homes
in the table, so that runs are long and gaps must be closed right. In the other the keys
themselves have three bits, so that only the comparison behind a key tells blocks apart;
there prompts have one block, since a parent is known by its key alone.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.serving.driver import Driver, small

from bedplate.serving import scheduler

NATIVE = Path(__file__).parents[2] / "native" / "serving"


@contextlib.contextmanager
def core(folder: Path, *macros: str) -> Iterator[None]:
    """The core, compiled with `macros`, instead of the installed one."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("NOT RUN: there is no C compiler")
    library = folder / "libcolliding.so"
    sources = [str(path) for path in sorted(NATIVE.glob("*.c"))]
    subprocess.run(
        [compiler, "-std=gnu11", "-O1", "-shared", "-fPIC", *macros,
         "-fsanitize=undefined", "-fno-sanitize-recover=all",
         f"-I{NATIVE / 'include'}", "-o", str(library), *sources],
        check=True,
    )  # fmt: skip
    ffi, _ = scheduler._library()
    found = (ffi, ffi.dlopen(str(library)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "_library", lambda: found)
        yield


@pytest.fixture(scope="module")
def few_homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keys differ, their homes seldom do."""
    with core(tmp_path_factory.mktemp("homes"), "-DBEDPLATE_TEST_HOME_BITS=3"):
        yield


@pytest.fixture
def few_keys(tmp_path: Path) -> Iterator[None]:
    """Eight keys in all."""
    with core(tmp_path, "-DBEDPLATE_TEST_HOME_BITS=3", "-DBEDPLATE_TEST_SHORT_KEYS"):
        yield


@pytest.mark.usefixtures("few_homes")
@pytest.mark.parametrize("seed", range(60))
def test_no_history_reads_another_prefix(seed: int) -> None:
    """Prompts of two tokens, so that blocks differ little: every read sees its own prefix, and
    all requests finish. The driver checks each plan and every invariant."""
    rng = np.random.default_rng(seed)
    blocks = int(rng.integers(6, 17))
    driver = Driver(small(block_count=blocks, max_running=int(rng.integers(1, 7))))
    longest = min(48, blocks * 4)
    for request in range(int(rng.integers(4, 16))):
        prompt = rng.integers(0, 2, int(rng.integers(1, longest - 3))).tolist()
        domain = (int(rng.integers(0, 2)), int(rng.integers(0, 2)))
        driver.add(request, prompt, int(rng.integers(1, 5)), domain=domain)
        for _ in range(int(rng.integers(0, 4))):
            driver.step()
    driver.drain()


@pytest.mark.usefixtures("few_keys")
def test_a_key_is_never_believed() -> None:
    """Of many blocks that differ in one token or half of the domain, each finds itself or
    nothing; the driver knows what every slot holds."""
    for place in (*range(4), "first", "second"):
        driver = Driver(small(block_count=40, max_batched_tokens=64))
        for request in range(60):
            prompt, domain, value = [3, 3, 3, 3, 9], [0, 0], request % 20
            if isinstance(place, int):
                prompt[place] = value
            else:
                domain[place == "second"] = value
            driver.add(request, prompt, 1, domain=tuple(domain))
            driver.drain()
        # Of 20 blocks no more than 8 have a key, and those are found again twice.
        assert 0 < driver.scheduler.stats().prefix_hit <= 8 * 2 * 4
