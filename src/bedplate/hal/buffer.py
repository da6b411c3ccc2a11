"""Device memory: buffers, ranges of them, and tensors over them.

The storage of a buffer lives until it is released and the last numpy view of
it is gone; so neither a release nor closing the device leaves a view dangling.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bedplate.hal import dlpack
from bedplate.hal.dtype import DType, as_dtype
from bedplate.hal.errors import InvalidArgument, Unsupported

if TYPE_CHECKING:
    from bedplate.hal.device import Device


class _HostSpan:
    """What numpy keeps as the base of a view: the memory's bytes."""

    def __init__(self, pointer: int, size: int) -> None:
        self.__array_interface__ = {
            "data": (pointer, False),
            "shape": (size,),
            "typestr": "|u1",
            "version": 3,
        }


class Buffer:
    """A memory object of a device. `handle` is the native one, `bytes` its size."""

    def __init__(self, device: Device, handle: int, size: int, host_pointer: int) -> None:
        self.device = device
        self.handle = handle
        self.bytes = size
        self._host_pointer = host_pointer
        self._views = 0
        self._released = False
        # Of another owner: only `release`, or closing the device, says that work is done.
        self.kept = False
        # Of another owner, who alone gives it back.
        self.borrowed = False

    def view(
        self, dtype: DType | DTypeLike, shape: Sequence[int] | None = None, offset_bytes: int = 0
    ) -> NDArray[Any]:
        """The bytes as a numpy array, without a copy.

        Needs `host_visible`. Without `shape`: everything from `offset_bytes`,
        one-dimensional. A type that numpy lacks gives its storage type, see
        `DType.storage`. Raises InvalidArgument past the end, Unsupported when
        the host cannot see the memory.
        """
        kind = as_dtype(dtype)
        size = kind.storage.itemsize
        left = self.bytes - offset_bytes
        if shape is None:
            shape = (max(left, 0) // size,)
        needed = size * math.prod(shape)
        if offset_bytes < 0 or needed > left or any(n < 0 for n in shape):
            raise InvalidArgument(
                f"a view of {needed} bytes at {offset_bytes} is outside a buffer of {self.bytes}"
            )
        flat = self._span()[offset_bytes : offset_bytes + needed]
        return flat.view(kind.storage).reshape(tuple(shape))

    @property
    def host_visible(self) -> bool:
        """Whether `view` works; a released buffer says what it was."""
        return self._host_pointer != 0

    def _span(self) -> NDArray[np.uint8]:
        if self._released or self.device.closed:
            raise InvalidArgument("the buffer was released", remedy="view it before")
        if not self._host_pointer:
            raise Unsupported(
                f"the host cannot see the memory of {self.device.id}",
                remedy="use device.download and device.upload",
            )
        span = _HostSpan(self._host_pointer, self.bytes)
        self._views += 1
        self.device.pin()
        weakref.finalize(span, self._unpin)
        return np.asarray(span)

    def __dlpack_device__(self) -> tuple[int, int]:
        """As `Tensor.__dlpack_device__`, of the buffer as bytes."""
        return self._bytes().__dlpack_device__()

    def __dlpack__(self, **wishes: Any) -> Any:
        """As `Tensor.__dlpack__`, of the buffer as bytes."""
        return self._bytes().__dlpack__(**wishes)

    def _bytes(self) -> Tensor:
        return Tensor(self, 0, (self.bytes,), DType.U8)

    def _unpin(self) -> None:
        self._views -= 1
        self._settle()
        self.device.unpin()

    def release(self) -> None:
        """Give the memory back; later use of the handle is refused. Twice is fine.

        Storage stays while batches in flight or numpy views use it.
        """
        if not self._released:
            self._released = True
            self._settle()

    def _settle(self) -> None:
        if self._released and self._views == 0 and self.handle:
            handle, self.handle = self.handle, 0
            if self.borrowed:
                return
            self.device.release_memory(handle)
            self.device.let_go(handle)

    def __del__(self) -> None:
        if hasattr(self, "kept") and not self.kept:
            self.release()

    def __repr__(self) -> str:
        return f"<Buffer {self.bytes} bytes on {self.device.id}>"


@dataclass(frozen=True, slots=True)
class Range:
    """`length` bytes of a buffer from `offset`; the native side checks the bounds."""

    buffer: Buffer
    offset: int
    length: int


class Tensor:
    """A shape over a buffer. `strides` count elements; dense row-major unless given.

    Raises InvalidArgument when it reaches past the buffer, for a negative
    size or stride, and for a block format whose rows are not whole blocks.
    """

    __slots__ = ("buffer", "dtype", "extent_bytes", "offset_bytes", "shape", "strides")

    def __init__(
        self,
        buffer: Buffer,
        offset_bytes: int,
        shape: Sequence[int],
        dtype: DType | DTypeLike,
        strides: Sequence[int] | None = None,
    ) -> None:
        self.buffer = buffer
        self.offset_bytes = offset_bytes
        self.shape = tuple(int(size) for size in shape)
        self.dtype = as_dtype(dtype)
        self.strides = _dense(self.shape) if strides is None else tuple(int(n) for n in strides)
        self.extent_bytes = _extent_bytes(self.shape, self.strides, self.dtype)
        if offset_bytes < 0 or self.extent_bytes > buffer.bytes - offset_bytes:
            raise InvalidArgument(
                f"a tensor of {self.extent_bytes} bytes at {offset_bytes} is outside "
                f"a buffer of {buffer.bytes}"
            )

    @property
    def range(self) -> Range:
        """From the first to the end of the last element."""
        return Range(self.buffer, self.offset_bytes, self.extent_bytes)

    def view(self) -> NDArray[Any]:
        """The elements as a numpy array, without a copy; see `Buffer.view`."""
        size = self.dtype.storage.itemsize
        count = self.extent_bytes // size
        return self.over(self.buffer.view(self.dtype, (count,), self.offset_bytes))

    def over(self, flat: NDArray[Any]) -> NDArray[Any]:
        """The elements as a view of `flat`: the extent's bytes, or elements of the storage type."""
        flat = flat.view(self.dtype.storage)
        if self.dtype.is_block:
            return _block_rows(flat, self.shape, self.strides, self.dtype)
        strides = tuple(stride * flat.itemsize for stride in self.strides)
        return np.lib.stride_tricks.as_strided(flat, self.shape, strides)

    def __dlpack_device__(self) -> tuple[int, int]:
        """(1, 0), the host. Raises BufferError when the host does not see the memory."""
        if not self.buffer.host_visible:
            raise BufferError(f"the host cannot see the memory of {self.buffer.device.id}")
        return dlpack.CPU, 0

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule over the elements, without a copy unless `copy`.

        What was submitted must be waited for before. The memory lives as long
        as the consumer wants. Raises BufferError, as the protocol asks, for a
        device or type that DLPack has no words for, and for a stream.
        """
        here = self.__dlpack_device__()
        if stream is not None:
            raise BufferError("the host has no streams")
        if dl_device not in (None, here):
            raise BufferError(f"the tensor is on DLPack device {here}, not {dl_device}")
        if self.dtype.is_block:
            raise BufferError(f"DLPack has no {self.dtype.name}")
        if copy:
            twin = self.buffer.device.empty(self.shape, self.dtype)
            twin.buffer.device.write(twin, self.view())
            return twin._capsule(max_version, copied=True)
        return self._capsule(max_version, copied=False)

    def _capsule(self, max_version: tuple[int, int] | None, *, copied: bool) -> Any:
        view = self.view()
        address = int(view.ctypes.data)
        elements = dlpack.Elements(address, self.shape, self.strides, int(self.dtype))
        versioned = max_version is not None and max_version[0] >= dlpack.VERSION[0]
        # The view keeps the storage, whatever happens to buffer and device.
        return dlpack.give(elements, view, versioned=versioned, copied=copied)

    def __repr__(self) -> str:
        return f"<Tensor {list(self.shape)} {self.dtype.name} on {self.buffer.device.id}>"


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _extent_bytes(shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType) -> int:
    if len(shape) != len(strides) or any(n < 0 for n in (*shape, *strides)):
        raise InvalidArgument(f"shape {list(shape)} with strides {list(strides)}")
    if 0 in shape:
        return 0
    if dtype.is_block:
        if not shape or strides[-1] != 1 or any(n % dtype.block_elements for n in strides[:-1]):
            raise InvalidArgument(
                f"{dtype.name} rows are dense and whole blocks apart, got shape {list(shape)} "
                f"with strides {list(strides)}"
            )
        dtype.row_bytes(shape[-1])
    last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    return dtype.row_bytes(last + 1)


def _block_rows(
    flat: NDArray[Any], shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType
) -> NDArray[Any]:
    scale = dtype.block_bytes / dtype.block_elements
    outer = tuple(int(stride * scale) for stride in strides[:-1])
    return np.lib.stride_tricks.as_strided(
        flat, (*shape[:-1], dtype.row_bytes(shape[-1])), (*outer, 1)
    )
