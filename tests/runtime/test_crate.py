"""The crate's own tests: random histories against a model, with planted failures."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from bedplate.core.paths import native_library_dir

ROOT = Path(__file__).parents[2]
CARGO = shutil.which("cargo")
PAIRS = ROOT / "build" / "Release" / "native" / "runtime" / "bedplate_runtime_pairs"


def run(operations: int) -> None:
    """The crate's tests, each seed of this length."""
    assert CARGO, "cargo is missing; `make build` needs it too"
    target = ROOT / "build" / "cargo-tests"
    done = subprocess.run(
        [CARGO, "test", "--offline", "--locked", "--quiet", "--target-dir", target],
        cwd=ROOT / "native" / "runtime" / "alloc",
        env=os.environ | {"OPERATIONS": str(operations)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "test result: ok" in done.stdout


@pytest.mark.timeout(300)
def test_random_histories_keep_every_rule() -> None:
    """A slice of what `make soak` runs."""
    run(20_000)


@pytest.mark.soak
def test_ten_million_operations_keep_every_rule() -> None:
    """Fourteen seeds of this length: more than ten million operations."""
    run(800_000)


SANITIZERS = {
    "address": ("asan", [], ["--test", "model", "--test", "threads"]),
    "thread": (
        "tsan",
        ["-Cunsafe-allow-abi-mismatch=sanitizer"],
        ["--test", "threads", "--features", "spin"],
    ),
}
"""Runtime, flags besides, and what runs: of the thread sanitizer only what has threads."""


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_a_sanitizer_finds_nothing_in_the_crate(sanitizer: str) -> None:
    """Histories and threads; std is not compiled under it. Debian's rustc has no sanitizers."""
    assert CARGO, "cargo is missing; `make build` needs it too"
    runtime, flags, words = SANITIZERS[sanitizer]
    rustc = shutil.which("rustc") or "rustc"
    asked = [subprocess.run([rustc, *word], capture_output=True, text=True, check=True).stdout
             for word in (["--print", "sysroot"], ["-vV"])]  # fmt: skip
    host = asked[1].partition("host: ")[2].split()[0]
    libraries = Path(asked[0].strip()) / "lib" / "rustlib" / host / "lib"
    if not list(libraries.glob(f"librustc*_rt.{runtime}.a")):
        pytest.skip(f"NOT RUN: this rustc comes without the {sanitizer} sanitizer")
    target = ROOT / "build" / f"cargo-{runtime}"
    done = subprocess.run(
        [CARGO, "test", "--offline", "--locked", "--target", host, *words, "--target-dir", target],
        cwd=ROOT / "native" / "runtime" / "alloc",
        env=os.environ
        | {"RUSTC_BOOTSTRAP": "1", "RUSTFLAGS": " ".join([f"-Zsanitizer={sanitizer}", *flags])}
        | {"OPERATIONS": "40000"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "no rule broken by 4 threads" in done.stdout


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_valgrind_finds_nothing_under_the_c_interface() -> None:
    """Pairs of every kind through the built library: no bad access, no leak of what is held."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        pytest.skip("NOT RUN: valgrind is not installed")
    for kind in ("hot", "split", "random"):
        done = subprocess.run(
            [
                valgrind,
                "--error-exitcode=9",
                "--errors-for-leak-kinds=definite",
                "--leak-check=full",
                PAIRS,
                native_library_dir() / "libbedplate_runtime.so",
                kind,
                "20000",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
