"""An open device: what everything else hangs from.

Closing gives back all that was made on it, whatever Python still holds; only
numpy views keep the memory, and then the native close happens when the last
of them goes. A closed device refuses every call, whether that has happened or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bedplate.core.command import quoted
from bedplate.hal import abi, dlpack
from bedplate.hal.buffer import Buffer, Range, Tensor
from bedplate.hal.dtype import DType, as_dtype
from bedplate.hal.errors import DeviceLost, HalError, InvalidArgument, Unsupported
from bedplate.hal.loader import Backend
from bedplate.hal.module import Module
from bedplate.hal.native import failure, ffi, new, read_text
from bedplate.hal.ops import OpPlan
from bedplate.hal.queue import Queue
from bedplate.hal.timeline import Timeline
from bedplate.hal.transfer import Transfer

MOST_CLAIMS = 4096
"""Far more capabilities than there are names for."""
_CAPABILITY = {
    number: name.removeprefix("BP_CAP_").lower() for number, name in abi.CAPABILITY_NAMES.items()
}


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """Facts about a device, known without opening it.

    `claims` is what the backend says it can do, `capabilities` the part that
    may be relied on; `limits` holds the numbers of capabilities that have one.
    """

    backend: str
    index: int
    name: str
    driver: str
    memory_bytes: int
    claims: frozenset[str]
    capabilities: frozenset[str]
    limits: Mapping[str, int]
    properties: Mapping[str, str]

    @property
    def id(self) -> str:
        """`<backend>:<index>`."""
        return f"{self.backend}:{self.index}"


def read_claims(backend: Backend, index: int) -> dict[str, int]:
    """Capability name to value, as the backend claims them; unknown numbers as `cap_<n>`."""
    count = ffi.new("uint32_t *")
    array = ffi.new("bp_capability[]", MOST_CLAIMS)
    backend.check(backend.api.core.capabilities(index, array, MOST_CLAIMS, count))
    if count[0] > MOST_CLAIMS:
        raise HalError(
            f"{backend.name} says that its device {index} has {count[0]} capabilities, "
            f"more than {MOST_CLAIMS}"
        )
    found = [array[i] for i in range(count[0])]
    return {_CAPABILITY.get(item.id, f"cap_{item.id}"): int(item.value) for item in found}


def read_info(backend: Backend, index: int) -> DeviceInfo:
    """Ask a backend about a device; its claims are taken for capabilities."""
    facts = new("bp_device_properties")
    backend.check(backend.api.core.properties(index, facts))
    claims = read_claims(backend, index)
    names = frozenset(claims)
    pairs = [facts.properties[i] for i in range(facts.property_count)]
    return DeviceInfo(
        backend=backend.name,
        index=index,
        name=read_text(facts.name),
        driver=read_text(facts.driver),
        memory_bytes=int(facts.memory_bytes),
        claims=names,
        capabilities=names,
        limits={name: value for name, value in claims.items() if value != 1},
        properties={read_text(pair.key): read_text(pair.value) for pair in pairs},
    )


class Device:
    """An open device; use `open_device`, best as a context."""

    def __init__(self, backend: Backend, info: DeviceInfo) -> None:
        self.backend = backend
        self.info = info
        self.api = backend.api
        out = ffi.new("uint64_t *")
        backend.check(self.api.core.open(info.index, out))
        self.handle = int(out[0])
        # The native device; `handle` is 0 from close on, this one from when it is given back.
        self._native = self.handle
        self.closed = False
        self.lost = False
        self._pins = 0
        self._transfer: Transfer | None = None
        # What gives imported memory back to its owner, by handle.
        self._imports: dict[int, Callable[[], None]] = {}

    @property
    def id(self) -> str:
        """`<backend>:<index>`."""
        return self.info.id

    @property
    def ops(self) -> Any:
        """The complete table `bp.ops.1`; Unsupported unless `ops` may be relied on."""
        if "ops" not in self.info.capabilities:
            raise Unsupported(
                f"{self.id} has no certified ops",
                remedy=f"run {quoted(f'hal conform {self.info.backend}')}",
            )
        return self.backend.ops

    def check(self, status: int, *, asynchronous: bool = False) -> None:
        """Raise the typed error of a negative status of this thread's last call."""
        if status == abi.BP_OK:
            return
        if self.closed:
            raise InvalidArgument(f"the device {self.id} is closed")
        error = failure(self.api, status, asynchronous=asynchronous)
        self.lost = self.lost or isinstance(error, DeviceLost)
        raise error

    def create(self, table: str, argument: Any) -> int:
        """A new handle from `create` of a table."""
        out = ffi.new("uint64_t *")
        self.check(getattr(self.api, table).create(self.handle, argument, out))
        return int(out[0])

    def allocate(self, bytes: int, *, alignment: int = 64, exportable: bool = False) -> Buffer:
        """Memory with undefined content.

        Raises InvalidArgument, OutOfDeviceMemory, and Unsupported when it must
        be `exportable` (`hal.external`) on a device that exports none.
        """
        if not 0 < bytes < 1 << 63:
            raise InvalidArgument(f"a buffer of {bytes} bytes", remedy="ask for at least 1")
        wanted = new("bp_memory_info", bytes=bytes, alignment=alignment)
        wanted.flags = abi.BP_MEMORY_EXPORTABLE if exportable else 0
        handle = self.create("mem", wanted)
        host = 0
        if "host_visible" in self.info.capabilities:
            info = new("bp_memory_info")
            self.check(self.api.mem.describe(self.handle, handle, info))
            host = int(ffi.cast("uintptr_t", info.host))
        return Buffer(self, handle, bytes, host)

    def borrow(self, memory: int) -> Buffer:
        """A buffer over a memory handle whose owner gives it back, not the buffer.

        For native code that allocates by itself, as the runtime's allocator
        does. Raises InvalidArgument for a handle that is none.
        """
        info = new("bp_memory_info")
        self.check(self.api.mem.describe(self.handle, memory, info))
        visible = "host_visible" in self.info.capabilities
        host = int(ffi.cast("uintptr_t", info.host)) if visible else 0
        buffer = Buffer(self, memory, int(info.bytes), host)
        buffer.borrowed = True
        return buffer

    @property
    def native_api(self) -> int:
        """The address of the backend's completed `bp_api`, for native code above the HAL."""
        return int(ffi.cast("uintptr_t", self.api))

    def empty(self, shape: Sequence[int], dtype: DType | DTypeLike) -> Tensor:
        """A dense tensor with undefined content, in a buffer of its own."""
        kind = as_dtype(dtype)
        if any(size < 0 for size in shape):
            raise InvalidArgument(f"the shape {list(shape)} has a negative size")
        elements = int(np.prod([int(size) for size in shape], dtype=object))
        return Tensor(self.allocate(max(kind.row_bytes(elements), 1)), 0, shape, kind)

    def upload(self, array: NDArray[Any]) -> Tensor:
        """A dense tensor with the array's elements; waits."""
        dense = np.ascontiguousarray(array)
        tensor = self.empty(array.shape, array.dtype)
        self.write(tensor, dense)
        return tensor

    def write(self, tensor: Tensor, array: NDArray[Any]) -> None:
        """Put an array's elements into a tensor of the same shape; waits.

        For bf16 and blocks the array holds bits, as `DType.storage` says.
        Raises Unsupported when the device has neither `host_visible` nor
        `pin_host`.
        """
        if 0 in tensor.shape:
            return
        if self._sees(tensor.buffer):
            tensor.view()[...] = array
            return
        # What lies between the elements of a strided tensor stays as it is.
        flat = self.read_bytes(tensor.range)
        tensor.over(flat)[...] = array
        self.write_bytes(tensor.range, flat)

    def download(self, tensor: Tensor) -> NDArray[Any]:
        """A copy of a tensor's elements as they are now; see `Queue.download`."""
        if 0 in tensor.shape:
            return np.empty(tensor.shape, tensor.dtype.storage)
        if self._sees(tensor.buffer):
            return np.array(tensor.view())
        return np.array(tensor.over(self.read_bytes(tensor.range)))

    def read_bytes(self, span: Range) -> NDArray[np.uint8]:
        """A copy of the bytes of a range as they are now; waits."""
        if self._sees(span.buffer):
            return np.array(span.buffer.view("u1", (span.length,), span.offset))
        return self._copies().read(span)

    def write_bytes(self, span: Range, data: NDArray[np.uint8]) -> None:
        """Put bytes into a range of their length; waits."""
        if data.nbytes != span.length:
            raise InvalidArgument(f"{data.nbytes} bytes for a range of {span.length}")
        if self._sees(span.buffer):
            span.buffer.view("u1", (span.length,), span.offset)[...] = data
        else:
            self._copies().write(span, np.ascontiguousarray(data))

    def _sees(self, buffer: Buffer) -> bool:
        return buffer.host_visible or self.closed

    def _copies(self) -> Transfer:
        if self._transfer is None:
            self._transfer = Transfer(self)
        return self._transfer

    def load_native_module(self, path: str | Path) -> Module:
        """Load a shared object of kernels; see `Module.from_file`."""
        return Module.from_file(self, Path(path))

    def load_module(self, kind: str, image: str | bytes, name: str = "module") -> Module:
        """Load code of a kind (`ptx`, `cubin`, `spirv`, `opencl_c`); see `Module.from_image`."""
        return Module.from_image(self, kind, image, name)

    def queue(self) -> Queue:
        """A new queue."""
        return Queue(self)

    def timeline(self, initial: int = 0) -> Timeline:
        """A new timeline."""
        return Timeline(self, initial)

    def plan_op(
        self, name: str, tensors: Sequence[Tensor | None], attributes: bytes = b""
    ) -> OpPlan:
        """Check an op of `bp.ops.1` for exact shapes; see `OpPlan`."""
        return OpPlan(self, name, tensors, attributes)

    def release_memory(self, handle: int) -> None:
        """Give a memory handle back; nothing after close."""
        if not self.closed:
            self.check(self.api.mem.release(self.handle, handle))

    def from_dlpack(self, source: Any) -> Tensor:
        """A tensor over another library's host memory, without a copy.

        `source` has `__dlpack__`, as arrays of numpy and tensors of PyTorch do.
        Its memory is held until `release` of the tensor's buffer, which the
        caller does when the work on it is done, or until the device is closed;
        letting go of the tensor alone does neither, because work may be in
        flight. Raises InvalidArgument for memory that is not the host's or is
        read-only, negative strides and unknown types, Unsupported without
        `host_visible` and `pin_host`.
        """
        for needed in ("host_visible", "pin_host"):
            if needed not in self.info.capabilities:
                raise Unsupported(f"{self.id} has no certified {needed}, which DLPack needs here")
        if not hasattr(source, "__dlpack__"):
            raise InvalidArgument(f"a {type(source).__name__} has no __dlpack__")
        try:
            capsule = source.__dlpack__(max_version=dlpack.VERSION)
        except TypeError:
            capsule = source.__dlpack__()
        elements, give_back = dlpack.take(capsule)
        try:
            return self._import(elements, give_back)
        except Exception:
            give_back()
            raise

    def _import(self, elements: dlpack.Elements, give_back: Callable[[], None]) -> Tensor:
        try:
            dtype = DType(elements.dtype)
        except ValueError as cause:
            raise InvalidArgument(f"the DLPack type 0x{elements.dtype:x} is unknown") from cause
        if elements.read_only:
            raise InvalidArgument("the memory is read-only", remedy="give a copy")
        if any(n < 0 for n in (*elements.shape, *elements.strides)):
            raise InvalidArgument(
                f"shape {list(elements.shape)} with strides {list(elements.strides)}",
                remedy="give a dense copy",
            )
        if 0 in elements.shape:
            give_back()
            return self.empty(elements.shape, dtype)
        pairs = zip(elements.shape, elements.strides, strict=True)
        last = sum((size - 1) * stride for size, stride in pairs)
        size = dtype.row_bytes(last + 1)
        if size >= 1 << 63:
            raise InvalidArgument(f"a tensor of {size} bytes is in no memory")
        out = ffi.new("uint64_t *")
        host = ffi.cast("void *", elements.address)
        self.check(self.api.mem.pin(self.handle, host, size, out))
        handle = int(out[0])
        self._imports[handle] = give_back
        buffer = Buffer(self, handle, size, elements.address)
        buffer.kept = True
        return Tensor(buffer, 0, elements.shape, dtype, elements.strides)

    def let_go(self, handle: int) -> None:
        """Give imported memory back to its owner; nothing for other handles."""
        give_back = self._imports.pop(handle, None)
        if give_back is not None:
            give_back()

    def pin(self) -> None:
        """Keep the memory while a view of it lives."""
        self._pins += 1

    def unpin(self) -> None:
        """A view is gone; the last one of a closed device ends it."""
        self._pins -= 1
        self._end()

    def close(self) -> None:
        """Give everything back. Twice is fine."""
        if not self.closed:
            self.closed = True
            self.handle = 0
            self._end()

    def _end(self) -> None:
        if self.closed and self._pins == 0 and self._native:
            handle, self._native = self._native, 0
            self.api.core.close(handle)
            for give_back in self._imports.values():
                give_back()
            self._imports.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Device {self.id} {self.info.name}>"
