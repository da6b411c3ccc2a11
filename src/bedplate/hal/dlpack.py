"""DLPack: tensors that cross to another library, and come from one, without a copy.

Both sides hand over a capsule with a struct that says where the elements are and
whom to call when they are not needed any more. A capsule is consumed once: who
takes it renames it, and calls the deleter when done; one that nobody took calls
it itself.

Source: DLPack 1.1, dlpack.h and the Python specification of its array interface.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cffi import FFI

from bedplate.hal.errors import InvalidArgument

VERSION = (1, 1)
CPU = 1
READ_ONLY = 1 << 0
COPIED = 1 << 1

ffi = FFI()
ffi.cdef(
    """
    typedef struct { uint32_t major, minor; } DLPackVersion;
    typedef struct { int32_t device_type, device_id; } DLDevice;
    typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
    typedef struct {
        void *data;
        DLDevice device;
        int32_t ndim;
        DLDataType dtype;
        int64_t *shape;
        int64_t *strides;
        uint64_t byte_offset;
    } DLTensor;
    typedef struct DLManagedTensor {
        DLTensor dl_tensor;
        void *manager_ctx;
        void (*deleter)(struct DLManagedTensor *self);
    } DLManagedTensor;
    typedef struct DLManagedTensorVersioned {
        DLPackVersion version;
        void *manager_ctx;
        void (*deleter)(struct DLManagedTensorVersioned *self);
        uint64_t flags;
        DLTensor dl_tensor;
    } DLManagedTensorVersioned;
    """
)

_python = ctypes.pythonapi
_new = _python.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_pointer = _python.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_valid = _python.PyCapsule_IsValid
_valid.restype, _valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_rename = _python.PyCapsule_SetName
_rename.restype, _rename.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]

PLAIN, VERSIONED = b"dltensor", b"dltensor_versioned"
# Names must outlive their capsules.
_USED = {PLAIN: b"used_dltensor", VERSIONED: b"used_dltensor_versioned"}
_KIND = {PLAIN: "DLManagedTensor", VERSIONED: "DLManagedTensorVersioned"}

_live: dict[int, tuple[Any, ...]] = {}
"""What given structs need, by the address of the struct, until their deleter is called."""


@dataclass(frozen=True, slots=True)
class Elements:
    """Where elements are: address, shape, strides in elements, packed dtype."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: int
    read_only: bool = False


def _forget(managed: Any) -> None:
    _live.pop(int(ffi.cast("uintptr_t", managed)), None)


_forget_plain = ffi.callback("void(DLManagedTensor *)", _forget)
_forget_versioned = ffi.callback("void(DLManagedTensorVersioned *)", _forget)


# A capsule that dies is given by address: as an object it would be counted again.
def _drop(capsule: int) -> None:
    raw_valid = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
    raw_pointer = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
    valid = ctypes.cast(_valid, ctypes.c_void_p).value
    pointer = ctypes.cast(_pointer, ctypes.c_void_p).value
    for name in (PLAIN, VERSIONED):
        if raw_valid(valid or 0)(capsule, name):
            _live.pop(raw_pointer(pointer or 0)(capsule, name), None)


_dropped = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_drop)


def give(elements: Elements, owner: object, *, versioned: bool, copied: bool = False) -> Any:
    """A capsule over host memory; `owner` lives until the consumer's deleter, or the capsule."""
    name = VERSIONED if versioned else PLAIN
    managed = ffi.new(f"{_KIND[name]} *")
    shape = ffi.new("int64_t[]", [*elements.shape, 0])
    strides = ffi.new("int64_t[]", [*elements.strides, 0])
    tensor = managed.dl_tensor
    tensor.data = ffi.cast("void *", elements.address)
    tensor.device.device_type, tensor.device.device_id = CPU, 0
    tensor.ndim, tensor.shape, tensor.strides = len(elements.shape), shape, strides
    tensor.dtype.code = elements.dtype & 0xFF
    tensor.dtype.bits = elements.dtype >> 8 & 0xFF
    tensor.dtype.lanes = elements.dtype >> 16
    managed.deleter = _forget_versioned if versioned else _forget_plain
    if versioned:
        managed.version.major, managed.version.minor = VERSION
        managed.flags = COPIED if copied else 0
    address = int(ffi.cast("uintptr_t", managed))
    _live[address] = (managed, shape, strides, owner)
    return _new(address, name, ctypes.cast(_dropped, ctypes.c_void_p))


def take(capsule: Any) -> tuple[Elements, Callable[[], None]]:
    """The elements of a capsule, which is then consumed, and what gives them back.

    Raises InvalidArgument for what is no capsule, was consumed before, is of
    another major version, or lies elsewhere than in host memory.
    """
    name = next((one for one in (VERSIONED, PLAIN) if _is(capsule, one)), None)
    if name is None:
        raise InvalidArgument("that is no DLPack capsule, or it was consumed before")
    managed = ffi.cast(f"{_KIND[name]} *", _pointer(capsule, name))
    if name == VERSIONED and managed.version.major != VERSION[0]:
        raise InvalidArgument(f"DLPack of major version {managed.version.major}, not {VERSION[0]}")
    tensor = managed.dl_tensor
    if tensor.device.device_type != CPU:
        raise InvalidArgument(f"the tensor is on DLPack device type {tensor.device.device_type}")
    shape = tuple(int(tensor.shape[i]) for i in range(tensor.ndim))
    elements = Elements(
        address=int(ffi.cast("uintptr_t", tensor.data)) + int(tensor.byte_offset),
        shape=shape,
        strides=_strides(tensor, shape),
        dtype=tensor.dtype.code | tensor.dtype.bits << 8 | tensor.dtype.lanes << 16,
        read_only=name == VERSIONED and bool(managed.flags & READ_ONLY),
    )
    _rename(capsule, _USED[name])
    given_back = False

    def give_back() -> None:
        nonlocal given_back
        if not given_back and managed.deleter != ffi.NULL:
            given_back = True
            managed.deleter(managed)

    return elements, give_back


def _is(capsule: Any, name: bytes) -> bool:
    return bool(_valid(capsule, name))


def _strides(tensor: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    if tensor.strides != ffi.NULL:
        return tuple(int(tensor.strides[i]) for i in range(len(shape)))
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
