"""Loader and cpu backend compiled under a sanitizer, and C programs linked against them."""

from __future__ import annotations

import concurrent.futures
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HAL = ROOT / "native" / "hal"
PROGRAMS = Path(__file__).parent / "native"
FLAGS = {
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "thread": ["-fsanitize=thread"],
}
SHARED = [HAL / "error.c", HAL / "adopt.c"]
LOADER = [HAL / "loader" / name for name in ("host.c", "loader.c", "negotiate.c", "stubs.c")]
CPU = (HAL / "chassis", HAL / "cpu", HAL / "cpu" / "ops")


class Sanitized:
    """A folder with the cpu backend under one sanitizer; programs are added to it."""

    def __init__(self, sanitizer: str, folder: Path) -> None:
        self.flags = FLAGS[sanitizer]
        self.folder = folder
        backend = [source for part in CPU for source in sorted(part.glob("*.c"))]
        objects = self._objects([*SHARED, *LOADER, *backend])
        self._host = objects[: len(SHARED) + len(LOADER)]
        parts = objects[: len(SHARED)] + objects[len(SHARED) + len(LOADER) :]
        self.library = folder / "backend.so"
        self._gcc("-shared", "-o", str(self.library), *parts, "-lm", "-lpthread")

    def program(self, name: str) -> Path:
        """A program of the files `<name>*.c` in `native/`, linked with the loader."""
        program = self.folder / name
        own = self._objects(sorted(PROGRAMS.glob(f"{name}*.c")))
        self._gcc("-o", str(program), *own, *self._host, "-ldl", "-lpthread")
        return program

    def run(self, program: Path, *words: str, timeout: float) -> subprocess.CompletedProcess[str]:
        """Run it with the backend as its first word."""
        environment = os.environ | {
            "TSAN_OPTIONS": "halt_on_error=1 exitcode=66",
            "ASAN_OPTIONS": "detect_leaks=1",
            "BEDPLATE_HAL_CPU_THREADS": "3",
            "BEDPLATE_CHECK": "1",
        }
        return subprocess.run(
            [program, self.library, *words],
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def _gcc(self, *words: str) -> None:
        subprocess.run(["gcc", *self.flags, *words], check=True)

    def _objects(self, sources: list[Path]) -> list[str]:
        """Objects of sources, two at a time."""
        options = ["-std=gnu11", "-O1", "-g", "-fPIC", "-fno-omit-frame-pointer"]
        options += ["-fvisibility=hidden", f"-I{HAL / 'include'}"]

        def one(source: Path) -> str:
            out = self.folder / (str(source.relative_to(ROOT)).replace("/", "_") + ".o")
            self._gcc(*options, "-c", str(source), "-o", str(out))
            return str(out)

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return list(pool.map(one, sources))
