"""The header of a GGUF file: its settings and its tensor table.

Every count, length and range is compared with the file's real size, with
unbounded integers, so that a hostile or truncated file is refused with one
sentence before any of it is mapped or allocated. Values are kept for the keys that
serving reads and skipped for all others, an array of numbers in one step, so that
the work is bounded by the strings, and they by the bounds below. Layout: the GGUF
specification, versions 2 and 3, little-endian.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from bedplate.serving.errors import ModelFileError, UnsupportedModel

# GGUF value type -> its letter for struct.
_SCALARS = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
_STRING, _ARRAY = 8, 9
_MOST_KEYS, _MOST_TENSORS, _MOST_DIMENSIONS = 1 << 16, 1 << 16, 4
_LONGEST_NAME = 1 << 16
_LONGEST_TEXT = 1 << 24  # chat templates have up to 2^15 bytes
# In arrays of one file, all together; the largest vocabularies have 2^18 tokens, and the
# merges between them are twice as many. Skipping so many takes a second.
_MOST_STRINGS = 1 << 22
_KEPT = ("general.", "llama.", "tokenizer.")
_KEPT_ARRAYS = ("tokenizer.ggml.tokens", "tokenizer.ggml.merges", "tokenizer.ggml.token_type")

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
class SkippedArray:
    """Stands for an array that serving does not read, so that its key is not absent."""

    count: int


Value = str | int | float | bool | list[str] | list[int] | list[float] | SkippedArray


@dataclass(frozen=True)
class TensorEntry:
    """One row of the tensor table: where its bytes lie in the file."""

    name: str
    type_name: str
    shape: tuple[int, ...]  # row-major
    offset_bytes: int
    bytes: int


@dataclass(frozen=True)
class Header:
    """What a file says of itself; `values` holds the keys that serving may read."""

    values: dict[str, Value]
    tensors: dict[str, TensorEntry]


class _Cursor:
    """Reads forward inside one mapped file; never past its end."""

    def __init__(self, path: Path, data: mmap.mmap | bytes) -> None:
        self.path, self.data, self.at, self.end = path, data, 0, len(data)
        self._strings_left = _MOST_STRINGS

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

    def expect_strings(self, count: int, what: str) -> None:
        """Refuse more strings than any sound file holds, or than have room in this one."""
        self._strings_left -= count
        if self._strings_left < 0 or count * 8 > self.end - self.at:
            self.fail(f"{what} counts {count} strings")

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

    def scalars(self, kind: int, count: int, what: str) -> tuple[int | float | bool, ...]:
        form = f"<{count}{_SCALARS[kind]}"
        start = self.take(count * struct.calcsize("<" + _SCALARS[kind]), what)
        return struct.unpack_from(form, self.data, start)


def _value(cursor: _Cursor, key: str, kind: int) -> Value | None:
    """The value of `key`, skipped and None where serving does not read it."""
    what = f"key {key}"
    kept = key.startswith(_KEPT)
    if kind in _SCALARS:
        return cursor.scalars(kind, 1, what)[0]
    if kind == _STRING:
        if kept:
            return cursor.text(what, _LONGEST_TEXT)
        cursor.skip_strings(1, what)
        return None
    if kind != _ARRAY:
        cursor.fail(f"{what} has unknown type {kind}")
    inner, count = cursor.number("I", what), cursor.number("Q", what)
    return _array(cursor, key, inner, count)


def _array(cursor: _Cursor, key: str, inner: int, count: int) -> Value:
    what = f"key {key}, an array of {count}"
    if inner == _STRING:
        cursor.expect_strings(count, what)
        if key in _KEPT_ARRAYS:
            return [cursor.text(what, _LONGEST_NAME) for _ in range(count)]
        cursor.skip_strings(count, what)
    elif inner in _SCALARS:
        size = struct.calcsize("<" + _SCALARS[inner])
        if key in _KEPT_ARRAYS and count <= _MOST_STRINGS and count * size <= cursor.end:
            return list(cursor.scalars(inner, count, what))
        cursor.take(count * size, what)
    else:
        cursor.fail(f"{what} is of unknown type {inner}")
    return SkippedArray(count)


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


def read_header(path: Path) -> Header:
    """Check the header of `path` and return what serving needs of it.

    Raises `ModelFileError` for anything that contradicts the file's length and
    `UnsupportedModel` for big-endian files, other versions and other types.
    """
    size = path.stat().st_size
    if size < 24:
        raise ModelFileError(f"{path} is truncated: {size} bytes is less than a GGUF header")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _header(_Cursor(path, data))


def _header(cursor: _Cursor) -> Header:
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
    values: dict[str, Value] = {}
    for _ in range(keys):
        key = cursor.text("a key's name", _LONGEST_NAME)
        value = _value(cursor, key, cursor.number("I", f"key {key}"))
        if key in values:
            cursor.fail(f"key {key} appears twice")
        if value is not None and key.startswith(_KEPT):
            values[key] = value
    return Header(values, _table(cursor, tensors, values.get("general.alignment", 32)))


def _table(cursor: _Cursor, tensors: int, alignment: Value) -> dict[str, TensorEntry]:
    if not isinstance(alignment, int):
        cursor.fail(f"general.alignment is {alignment}")
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
