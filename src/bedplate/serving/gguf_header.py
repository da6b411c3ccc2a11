"""A check of a GGUF header before its library reads it.

Every count, length and range is compared with the file's real size, with
unbounded integers, so that a hostile or truncated file is refused with one
sentence before any of it is mapped or allocated. Layout: the GGUF specification,
versions 2 and 3, little-endian.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from bedplate.serving.errors import ModelFileError, UnsupportedModel

_SCALAR_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING, _ARRAY = 8, 9
_MOST_KEYS, _MOST_TENSORS, _MOST_DIMENSIONS = 1 << 16, 1 << 16, 4
_LONGEST_NAME = 1 << 16

# ggml type -> (name, elements in a block, bytes of a block); those that load.
TENSOR_TYPES = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    8: ("Q8_0", 32, 34),
    30: ("BF16", 1, 2),
}


@dataclass(frozen=True)
class TensorEntry:
    """One row of the tensor table: where its bytes lie in the file."""

    name: str
    type_name: str
    shape: tuple[int, ...]  # row-major
    offset_bytes: int
    bytes: int


class _Cursor:
    """Reads forward inside one mapped file; never past its end."""

    def __init__(self, path: Path, data: mmap.mmap | bytes) -> None:
        self.path, self.data, self.at, self.end = path, data, 0, len(data)

    def fail(self, what: str) -> NoReturn:
        raise ModelFileError(
            f"{self.path} is truncated or damaged: {what}",
            remedy="fetch the file again and compare its checksum",
        )

    def take(self, count: int, what: str) -> int:
        """Skip `count` bytes; returns where they start."""
        start = self.at
        if count < 0 or start + count > self.end:
            self.fail(f"{what} needs {count} bytes at offset {start}, the file has {self.end}")
        self.at = start + count
        return start

    def number(self, code: str, what: str) -> int:
        size = struct.calcsize("<" + code)
        return int(struct.unpack_from("<" + code, self.data, self.take(size, what))[0])

    def text(self, what: str, longest: int) -> str:
        length = self.number("Q", what)
        if length > longest:
            self.fail(f"{what} is {length} bytes long")
        start = self.take(length, what)
        try:
            return bytes(self.data[start : start + length]).decode("utf-8")
        except UnicodeDecodeError:
            return self.fail(f"{what} is not UTF-8")

    def skip_strings(self, count: int, what: str) -> None:
        unpack = struct.Struct("<Q").unpack_from
        at, end, data = self.at, self.end, self.data
        for _ in range(count):
            if at + 8 > end:
                self.fail(f"{what} ends inside a string")
            at += 8 + unpack(data, at)[0]
            if at > end:
                self.fail(f"{what} holds a string that reaches past the end of the file")
        self.at = at


def _skip_value(cursor: _Cursor, kind: int, what: str, depth: int = 0) -> None:
    if kind in _SCALAR_BYTES:
        cursor.take(_SCALAR_BYTES[kind], what)
    elif kind == _STRING:
        cursor.skip_strings(1, what)
    elif kind == _ARRAY and depth == 0:
        inner, count = cursor.number("I", what), cursor.number("Q", what)
        if inner in _SCALAR_BYTES:
            cursor.take(count * _SCALAR_BYTES[inner], f"{what}, an array of {count}")
        elif inner == _STRING:
            if count * 8 > cursor.end - cursor.at:
                cursor.fail(f"{what} counts {count} strings")
            cursor.skip_strings(count, what)
        else:
            cursor.fail(f"{what} is an array of unknown type {inner}")
    else:
        cursor.fail(f"{what} has unknown type {kind}")


def _tensor_entry(cursor: _Cursor, index: int) -> tuple[str, int, tuple[int, ...], int]:
    name = cursor.text(f"the name of tensor {index}", _LONGEST_NAME)
    rank = cursor.number("I", f"tensor {name}")
    if not 1 <= rank <= _MOST_DIMENSIONS:
        cursor.fail(f"tensor {name} has {rank} dimensions")
    shape = tuple(cursor.number("Q", f"tensor {name}") for _ in range(rank))
    kind = cursor.number("I", f"tensor {name}")
    return name, kind, shape[::-1], cursor.number("Q", f"tensor {name}")


def _extent(cursor: _Cursor, name: str, kind: int, shape: tuple[int, ...]) -> int:
    """Bytes of the tensor, by exact arithmetic."""
    if kind not in TENSOR_TYPES:
        raise UnsupportedModel(
            f"tensor {name} in {cursor.path} has ggml type {kind}, which is not served",
            remedy="convert the model to F32, F16, BF16, Q8_0, Q4_0 or Q4_1",
        )
    _, elements, block_bytes = TENSOR_TYPES[kind]
    count = 1
    for size in shape:
        if size < 1 or size > 1 << 40:
            cursor.fail(f"tensor {name} has a dimension of {size}")
        count *= size
    if shape[-1] % elements:
        cursor.fail(f"tensor {name} has rows of {shape[-1]} elements, not whole blocks")
    return count // elements * block_bytes


def read_tensor_table(path: Path) -> dict[str, TensorEntry]:
    """Check the header of `path` and return its tensor table.

    Raises `ModelFileError` for anything that contradicts the file's length and
    `UnsupportedModel` for big-endian files, other versions and other types.
    """
    size = path.stat().st_size
    if size < 24:
        raise ModelFileError(f"{path} is truncated: {size} bytes is less than a GGUF header")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _table(_Cursor(path, data))


def _table(cursor: _Cursor) -> dict[str, TensorEntry]:
    path = cursor.path
    if bytes(cursor.data[:4]) != b"GGUF":
        raise ModelFileError(f"{path} is not a GGUF file: it starts with {cursor.data[:4]!r}")
    cursor.at = 4
    version = cursor.number("I", "the version")
    if version not in (2, 3):
        raise UnsupportedModel(f"{path} is GGUF version {version}; 2 and 3 are read")
    tensors, keys = cursor.number("Q", "the tensor count"), cursor.number("Q", "the key count")
    if tensors > _MOST_TENSORS or keys > _MOST_KEYS:
        cursor.fail(f"it counts {tensors} tensors and {keys} keys")
    alignment = 32
    for _ in range(keys):
        key = cursor.text("a key's name", _LONGEST_NAME)
        kind = cursor.number("I", f"key {key}")
        if key == "general.alignment" and kind == 4:
            alignment = cursor.number("I", key)
        else:
            _skip_value(cursor, kind, f"key {key}")
    if alignment < 1 or alignment > 1 << 20 or alignment & (alignment - 1):
        cursor.fail(f"general.alignment is {alignment}")
    rows = [_tensor_entry(cursor, i) for i in range(tensors)]
    start = -(-cursor.at // alignment) * alignment
    table: dict[str, TensorEntry] = {}
    for name, kind, shape, offset in rows:
        extent = _extent(cursor, name, kind, shape)
        if name in table:
            cursor.fail(f"tensor {name} appears twice")
        if offset % alignment or start + offset + extent > cursor.end:
            cursor.fail(
                f"tensor {name} lies at {start + offset} with {extent} bytes, "
                f"the file has {cursor.end}"
            )
        table[name] = TensorEntry(name, TENSOR_TYPES[kind][0], shape, start + offset, extent)
    return table
