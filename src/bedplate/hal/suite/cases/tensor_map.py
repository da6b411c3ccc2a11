"""tensor_map: descriptors of tiles, and what a kernel takes by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bedplate.hal import abi
from bedplate.hal.batch import U32, Argument, Batch
from bedplate.hal.buffer import Buffer
from bedplate.hal.dtype import DType
from bedplate.hal.native import ffi, new
from bedplate.hal.suite import structs
from bedplate.hal.suite.registry import case
from bedplate.hal.suite.subject import Subject, expect

BAD = abi.BP_INVALID_ARGUMENT
MAP_BYTES = abi.BP_TENSOR_MAP_BYTES
ROWS, COLUMNS = 24, 32


class Asked:
    """A `bp_tensor_map_info` of f32 rows, and what it points to."""

    def __init__(
        self,
        buffer: Buffer,
        *,
        shape: Sequence[int] = (ROWS, COLUMNS),
        stride: Sequence[int] | None = None,
        box: Sequence[int] | None = (4, 8),
        **fields: int,
    ) -> None:
        self.tensor = new("bp_tensor", dtype=int(DType.F32), rank=len(shape))
        self.tensor.range.memory, self.tensor.range.length = buffer.handle, buffer.bytes
        self._keep = [ffi.new("int64_t[]", [*shape, 0])]
        self.tensor.shape = self._keep[0]
        if stride is not None:
            self._keep.append(ffi.new("int64_t[]", [*stride, 0]))
            self.tensor.stride = self._keep[-1]
        self.info = new("bp_tensor_map_info", **fields)
        self.info.tensor = self.tensor
        if box is not None:
            self._keep.append(ffi.new("uint32_t[]", [*box, 0]))
            self.info.tile = self._keep[-1]
        self.buffer = buffer


def room() -> tuple[Any, Any]:
    """A place for a map, aligned to 64, with a canary behind it; and what owns it."""
    raw = ffi.new("char[]", MAP_BYTES + 192)
    start = int(ffi.cast("uintptr_t", raw))
    place = ffi.cast("char *", (start + 63) & ~63)
    ffi.buffer(place, MAP_BYTES + 64)[:] = b"\xee" * (MAP_BYTES + 64)
    return place, raw


def encode(s: Subject, asked: Asked) -> bytes:
    """The bytes of a map that must be made."""
    place, owner = room()
    s.works(s.backend.tensor_maps.encode(s.handle, asked.info, place), "tensor_maps.encode")
    whole = bytes(ffi.buffer(place, MAP_BYTES + 64))
    del owner
    expect(whole[MAP_BYTES:] == b"\xee" * 64, f"encode wrote past {MAP_BYTES} bytes")
    return whole[:MAP_BYTES]


def status(s: Subject, asked: Any) -> int:
    """The status of making a map of a raw info."""
    place, owner = room()
    given = int(s.backend.tensor_maps.encode(s.handle, asked, place))
    del owner
    return given


@case("tensor_map", "positive")
def a_map_says_what_was_asked(s: Subject) -> None:
    """The same twice; another one for another box, swizzle or address."""
    buffer, other = s.memory(ROWS * COLUMNS * 4), s.memory(ROWS * COLUMNS * 4)
    first = encode(s, Asked(buffer))
    expect(first == encode(s, Asked(buffer)), "the same was asked and two maps were made")
    for what, asked in {
        "box": Asked(buffer, box=(8, 8)),
        "swizzle": Asked(buffer, swizzle=abi.BP_TENSOR_MAP_SWIZZLE_32),
        "address": Asked(other),
    }.items():
        expect(encode(s, asked) != first, f"another {what} gave the same map")


@case("tensor_map", "positive", needs=["module_ptx"])
def a_kernel_takes_its_tile(s: Subject) -> None:
    """Inside, across the end, where zeros are, and of rows with room between them."""
    values = np.arange(1, ROWS * COLUMNS + 1, dtype="f4").reshape(ROWS, COLUMNS)
    buffer = s.memory(values.nbytes)
    s.put(buffer, values)
    path = s.code_path("ptx").with_name("tensor_map.ptx")
    kernel = s.device.load_module("ptx", path.read_bytes(), path.name).kernel("tensor_tile")
    narrow = Asked(buffer, shape=(ROWS, 20), stride=(COLUMNS, 1))
    for asked, width, at in ((Asked(buffer), 32, (8, 4)), (narrow, 20, (16, 22))):
        out, batch = s.memory(4 * 32, 0xFF), Batch()
        x, y = at
        arguments: list[Argument] = [encode(s, asked), out, U32(x), U32(y), U32(32)]
        batch.launch(kernel, (1,), arguments, block=(32,))
        s.completes(batch, "a bulk copy of a tile")
        wanted = np.zeros((4, 8), "f4")
        part = values[y : y + 4, x : min(x + 8, width)]
        wanted[: part.shape[0], : part.shape[1]] = part
        got = np.frombuffer(s.content(out), "f4").reshape(4, 8)
        expect((got == wanted).all(), f"the tile at {at} is wrong: {got.tolist()}")


@case("tensor_map", "negative")
def impossible_maps_are_refused(s: Subject) -> None:
    """Ranks, boxes, steps, swizzles, strides and extents that are none."""
    buffer = s.memory(ROWS * COLUMNS * 4)
    for what, asked in {
        "no dimensions": Asked(buffer, shape=(), box=()),
        "six dimensions": Asked(buffer, shape=(1,) * 6, box=(1,) * 6),
        "no box": Asked(buffer, box=None),
        "an empty box": Asked(buffer, box=(0, 8)),
        "a box of 257": Asked(buffer, box=(257, 8)),
        "a size of zero": Asked(buffer, shape=(0, COLUMNS)),
        "a negative size": Asked(buffer, shape=(-1, COLUMNS)),
        "an unknown swizzle": Asked(buffer, swizzle=99),
        "more rows than the range has": Asked(buffer, shape=(ROWS + 1, COLUMNS)),
        "a shape that overflows": Asked(buffer, shape=(1 << 62, 1 << 62)),
        "a stride off 16 bytes": Asked(buffer, shape=(4, 8), stride=(9, 1)),
        "a last dimension that is not dense": Asked(buffer, shape=(4, 4), stride=(8, 2)),
    }.items():
        s.refuses(status(s, asked.info), (BAD, abi.BP_UNSUPPORTED), f"a map with {what}")
    stale = Asked(buffer)
    stale.tensor.range.memory = 1 << 40
    s.refuses(status(s, stale.info), BAD, "a map of a stale memory")
    unknown = Asked(buffer)
    unknown.tensor.dtype = 0x7FFFFFFF
    s.refuses(status(s, unknown.info), (BAD, abi.BP_UNSUPPORTED), "a map of an unknown dtype")


@case("tensor_map", "negative")
def a_map_needs_its_place(s: Subject) -> None:
    """Null, or off 64 bytes."""
    asked, (place, owner) = Asked(s.memory(ROWS * COLUMNS * 4)), room()
    call = s.backend.tensor_maps.encode
    s.refuses(call(s.handle, asked.info, ffi.NULL), BAD, "a map without a place")
    s.refuses(call(s.handle, asked.info, place + 32), BAD, "a map at 32 of 64 bytes")
    del owner


def _info(s: Subject) -> tuple[Any, Any]:
    asked = Asked(s.memory(ROWS * COLUMNS * 4))
    return asked.info, asked


structs.add(structs.StructRule("tensor_map", "bp_tensor_map_info", _info, status))
