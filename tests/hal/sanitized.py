"""Loader and backends compiled under a sanitizer, and C programs linked against them.

Objects are kept in the build folder under the hash of all they are made of, so
only what changed is compiled again; the folder may be deleted at any time.
"""

from __future__ import annotations

import concurrent.futures
import functools
import hashlib
import os
import subprocess
import time
from pathlib import Path

from tests.hal.foreign import register

ROOT = Path(__file__).resolve().parents[2]
HAL = ROOT / "native" / "hal"
PROGRAMS = Path(__file__).parent / "native"
KEPT = ROOT / "build" / "sanitized"
KEPT_S = 7 * 86400
"""How long an object stays that nobody asks for."""

FLAGS = {
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "thread": ["-fsanitize=thread"],
}
RUNTIMES = {"address": "libasan.so", "thread": "libtsan.so"}
SETTINGS = {
    "TSAN_OPTIONS": "halt_on_error=1 exitcode=66",
    "ASAN_OPTIONS": "detect_leaks=1",
    "BEDPLATE_HAL_CPU_THREADS": "3",
    "BEDPLATE_CHECK": "1",
}
SHARED = ("error.c", "adopt.c")
LOADER = ("loader/host.c", "loader/loader.c", "loader/negotiate.c", "loader/stubs.c")
OPTIONS = ["-std=gnu11", "-O0", "-g1", "-fPIC", "-fno-omit-frame-pointer", "-fvisibility=hidden"]
"""Without optimisation all is checked that was written, and compiling takes a third."""
PARTS = {
    "cpu": ("chassis/*.c", "cpu/*.c", "cpu/ops/*.c"),
    "shuffle": ("chassis/*.c", "cpu/*.c", "cpu/ops/*.c", "shuffle/*.c"),
    "opencl": ("chassis/*.c", "opencl/*.c"),
    "example": (
        *("chassis/*.c", "cpu/execute.c", "cpu/facts.c", "cpu/isa.c", "cpu/memory.c"),
        *("cpu/plan.c", "cpu/pool.c", "cpu/windows.c", "cpu/ops/*.c", "inprocess/*.c"),
    ),
}
"""Sources of a backend, as native/hal/CMakeLists.txt has them."""

WITHOUT = {"shuffle": {"chassis/execute.c", "chassis/queue.c", "cpu/query.c"}}


def sources(backend: str) -> list[Path]:
    """The files that a backend is compiled of."""
    wanted = {path for part in PARTS[backend] for path in HAL.glob(part)}
    wanted -= {HAL / name for name in WITHOUT.get(backend, ())}
    return sorted(wanted)


class Sanitized:
    """Backends and programs under one sanitizer, linked into a folder when first asked for."""

    def __init__(self, sanitizer: str, folder: Path) -> None:
        self.sanitizer = sanitizer
        self.flags = FLAGS[sanitizer]
        self.folder = folder

    @functools.cache  # noqa: B019  one for each sanitizer and session
    def backend(self, name: str) -> Path:
        """The library of a backend."""
        library = self.folder / f"bedplate_hal_{name}.so"
        objects = self._objects([HAL / shared for shared in SHARED] + sources(name))
        self._gcc("-shared", "-o", str(library), *objects, "-lm", "-lpthread", "-ldl")
        library.chmod(0o755)
        return library

    def manifest(self, name: str) -> Path:
        """What a host needs to take that library for the backend."""
        return register(self.backend(name), name)

    @functools.cache  # noqa: B019  as above
    def program(self, name: str) -> Path:
        """A program of the files `<name>*.c` in `native/`, linked with the loader."""
        program = self.folder / name
        files = sorted(PROGRAMS.glob(f"{name}*.c"))
        objects = self._objects([*files, *(HAL / part for part in (*SHARED, *LOADER))])
        self._gcc("-o", str(program), *objects, "-ldl", "-lpthread")
        return program

    def run(
        self, program: Path, *words: str, timeout: float, backend: str = "cpu"
    ) -> subprocess.CompletedProcess[str]:
        """Run it with the library of a backend as its first word."""
        return subprocess.run(
            [program, self.backend(backend), *words],
            env=os.environ | SETTINGS,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def runtime(self) -> str:
        """The sanitizer's library, for LD_PRELOAD of a host that is not compiled under it."""
        command = ["gcc", f"-print-file-name={RUNTIMES[self.sanitizer]}"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def _gcc(self, *words: str) -> None:
        subprocess.run(["gcc", *self.flags, *words], check=True)

    def _objects(self, files: list[Path]) -> list[str]:
        """Objects of sources, two at a time."""
        KEPT.mkdir(parents=True, exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return list(pool.map(self._object, files))

    def _object(self, source: Path) -> str:
        options = [*OPTIONS, f"-I{HAL / 'include'}"]
        if source.parent.name == "inprocess":
            options.append('-DBP_PROVIDER_NAME="example"')
        made_of = [*self.flags, *options, str(source), surroundings()]
        key = hashlib.sha256("\0".join(made_of).encode() + source.read_bytes()).hexdigest()
        kept = KEPT / f"{source.stem}-{key[:32]}.o"
        try:
            os.utime(kept)
        except FileNotFoundError:
            fresh = self.folder / f"{key}.o"
            self._gcc(*options, "-c", str(source), "-o", str(fresh))
            # Beside it first: another session may look for it meanwhile.
            beside = KEPT / f"{key}.{os.getpid()}"
            beside.write_bytes(fresh.read_bytes())
            beside.replace(kept)
        return str(kept)


@functools.cache
def surroundings() -> str:
    """Compiler and headers, which all objects depend on; forgets objects that nobody wants."""
    version = subprocess.run(["gcc", "--version"], capture_output=True, check=True).stdout
    made_of = hashlib.sha256(version)
    for header in sorted([*HAL.rglob("*.h"), *PROGRAMS.rglob("*.h")]):
        made_of.update(str(header).encode() + header.read_bytes())
    if KEPT.exists():
        for path in KEPT.iterdir():
            if time.time() - path.stat().st_mtime > KEPT_S:
                path.unlink(missing_ok=True)
    return made_of.hexdigest()
