"""The scheduler compiled under a sanitizer, beside a HAL that is, and a program over both.

Objects are kept as those of tests/hal are, in the same folder.
"""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path

from tests.hal.sanitized import HAL, KEPT, LOADER, ROOT, SHARED, Sanitized, surroundings

RUNTIME = ROOT / "native" / "runtime"
PROGRAMS = Path(__file__).parent / "native"
OPTIONS = ["-std=c++20", "-O1", "-g1", "-fPIC", "-fno-omit-frame-pointer", "-fvisibility=hidden"]


class SanitizedStreams(Sanitized):
    """As its base, and with C++."""

    @functools.cache  # noqa: B019  one for each sanitizer and session
    def scheduler(self, name: str) -> Path:
        """A program of `native/`, linked with the scheduler and the loader."""
        program = self.folder / name
        files = [PROGRAMS / f"{name}.cpp", *sorted((RUNTIME / "stream").glob("*.cpp"))]
        objects = self._objects([*files, *(HAL / part for part in (*SHARED, *LOADER))])
        self._gcc("-o", str(program), *objects, "-lstdc++", "-ldl", "-lpthread")
        return program

    def _object(self, source: Path) -> str:
        if source.suffix != ".cpp":
            return super()._object(source)
        options = [*OPTIONS, f"-I{HAL / 'include'}", f"-I{RUNTIME / 'include'}"]
        made_of = hashlib.sha256("\0".join([*self.flags, *options, str(source)]).encode())
        made_of.update(surroundings().encode() + source.read_bytes())
        for header in sorted([*(RUNTIME / "stream").glob("*.hpp"), *RUNTIME.glob("include/*/*.h")]):
            made_of.update(header.read_bytes())
        kept = KEPT / f"{source.stem}-{made_of.hexdigest()[:32]}.o"
        try:
            os.utime(kept)
        except FileNotFoundError:
            beside = KEPT / f"{made_of.hexdigest()}.{os.getpid()}"
            self._gcc(*options, "-c", str(source), "-o", str(beside))
            beside.replace(kept)
        return str(kept)
