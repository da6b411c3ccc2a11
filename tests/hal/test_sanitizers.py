"""Loader and cpu backend under ASan with UBSan, and under TSan, by a C driver."""

from __future__ import annotations

import concurrent.futures
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HAL = ROOT / "native" / "hal"
FLAGS = {
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "thread": ["-fsanitize=thread"],
}
SECONDS = "1.5"


def compile_all(sources: list[Path], folder: Path, flags: list[str]) -> list[str]:
    """Objects of sources, two at a time."""
    options = ["gcc", "-std=gnu11", "-O1", "-g", "-fPIC", "-fno-omit-frame-pointer"]
    options += ["-fvisibility=hidden", f"-I{HAL / 'include'}", *flags]

    def one(source: Path) -> str:
        out = folder / (str(source.relative_to(ROOT)).replace("/", "_") + ".o")
        subprocess.run([*options, "-c", str(source), "-o", str(out)], check=True)
        return str(out)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, sources))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("sanitizer", list(FLAGS))
def test_nothing_is_found(sanitizer: str, tmp_path: Path, conform_module: Path) -> None:
    """Threads that submit, wait, fail, destroy and close at once; no report, exit 0."""
    flags = FLAGS[sanitizer]
    shared = [HAL / "error.c", HAL / "adopt.c"]
    loader = [HAL / "loader" / name for name in ("host.c", "loader.c", "negotiate.c", "stubs.c")]
    folders = (HAL / "chassis", HAL / "cpu", HAL / "cpu" / "ops")
    backend = [source for folder in folders for source in folder.glob("*.c")]
    driver = Path(__file__).parent / "native" / "driver.c"
    objects = compile_all([*shared, *loader, *backend, driver], tmp_path, flags)
    common, host, device, main = objects[:2], objects[2:6], objects[6:-1], objects[-1]
    library, program = tmp_path / "backend.so", tmp_path / "driver"
    subprocess.run(
        ["gcc", "-shared", *flags, "-o", library, *common, *device, "-lm", "-lpthread"],
        check=True,
    )
    subprocess.run(
        ["gcc", *flags, "-o", program, *common, *host, main, "-ldl", "-lpthread"], check=True
    )
    environment = os.environ | {
        "TSAN_OPTIONS": "halt_on_error=1 exitcode=66",
        "ASAN_OPTIONS": "detect_leaks=1",
        "BEDPLATE_HAL_CPU_THREADS": "3",
        "BEDPLATE_CHECK": "1",
    }
    done = subprocess.run(
        [program, library, conform_module, SECONDS],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-6000:]
