"""The bytes of a trace's file, unpacked as they are read, with an end.

A few bytes of `.xz` can stand for gigabytes. A reader gets a stream that refuses when
more comes out than a trace has: by the file's packed size, and at all.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from bedplate.runtime.errors import TraceInvalid

MOST_BYTES = 1 << 30
FREE_BYTES = 64 << 20
MOST_RATIO = 1000
"""Our recorded traces are packed 6 to 17 times, a loop of equal steps some hundred times.
Beyond FREE_BYTES a file may give so much."""

BROKEN = (OSError, EOFError, lzma.LZMAError, zlib.error)


class Unpacked(io.RawIOBase):
    """A stream of at most so many bytes."""

    def __init__(self, source: Any, path: Path, most: int, why: str) -> None:
        self._source, self._path = source, path
        self._most, self._why = most, why
        self._read = 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read on. Raises TraceInvalid beyond the end."""
        got = self._source.read(len(buffer))
        self._read += len(got)
        if self._read > self._most:
            raise TraceInvalid(
                f"{self._path} holds more than {self._most:,} bytes{self._why}", remedy="cut it"
            )
        buffer[: len(got)] = got
        return len(got)


@contextlib.contextmanager
def unpacked(path: Path) -> Iterator[io.BufferedReader]:
    """A trace's file as what is inside. Raises TraceInvalid when it cannot be read."""
    try:
        with contextlib.ExitStack() as opened:
            file = opened.enter_context(path.open("rb"))
            most, why = MOST_BYTES, ""
            source: BinaryIO | lzma.LZMAFile | gzip.GzipFile = file
            if path.suffix in (".xz", ".gz"):
                size = os.fstat(file.fileno()).st_size
                if (bound := FREE_BYTES + MOST_RATIO * size) < most:
                    most, why = bound, f" in {size:,} packed ones"
            if path.suffix == ".xz":
                source = opened.enter_context(lzma.LZMAFile(file))
            elif path.suffix == ".gz":
                source = opened.enter_context(gzip.GzipFile(fileobj=file))
            yield io.BufferedReader(Unpacked(source, path, most, why), 1 << 16)
    except BROKEN as cause:
        reason = getattr(cause, "strerror", None) or cause
        raise TraceInvalid(f"{path} cannot be read: {reason}") from cause
