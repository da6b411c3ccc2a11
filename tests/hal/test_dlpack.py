"""DLPack with numpy as the peer: same memory both ways, and who keeps it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.hal import dlpack
from bedplate.hal.api import (
    Batch,
    Device,
    DType,
    InvalidArgument,
    Queue,
    Tensor,
    Unsupported,
    open_device,
)
from bedplate.hal.native import ffi


class Plain:
    """A producer of the unversioned kind, which knows no max_version."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self) -> object:
        return self.array.__dlpack__()


def test_numpy_sees_our_memory(device: Device, queue: Queue) -> None:
    """Both ways: what the device writes, and what numpy writes."""
    tensor = device.upload(np.arange(12, dtype="f4").reshape(3, 4))
    array = np.from_dlpack(tensor)
    assert (array.shape, array.dtype) == ((3, 4), np.float32)
    assert array.ctypes.data == tensor.view().ctypes.data
    batch = Batch()
    batch.fill(tensor, 0x3F800000)
    queue.submit(batch)
    queue.synchronize()
    assert (array == 1).all()
    array[1, 2] = 7
    assert device.download(tensor)[1, 2] == 7


def test_a_buffer_is_bytes(device: Device) -> None:
    """One dimension of uint8, all of it."""
    buffer = device.allocate(100)
    array = np.from_dlpack(buffer)
    assert (array.shape, array.dtype) == ((100,), np.uint8)
    assert buffer.__dlpack_device__() == (dlpack.CPU, 0)


@pytest.mark.parametrize("dtype", ["f4", "f2", "i1", "i4", "i8", "u1", "u4", "u8"])
def test_types_and_strides_arrive(device: Device, dtype: str) -> None:
    """Every type that numpy has too, with rows apart."""
    buffer = device.allocate(4 * 8 * 8)
    tensor = Tensor(buffer, 0, (4, 3), dtype, (8, 2))
    array = np.from_dlpack(tensor)
    assert array.dtype == np.dtype(dtype)
    assert array.strides == (8 * array.itemsize, 2 * array.itemsize)


def test_memory_outlives_buffer_and_device() -> None:
    """While the consumer holds it; then it goes."""
    with open_device("cpu", trust_claims=True) as device:
        tensor, handle = device.upload(np.arange(1000, dtype="i8")), device.handle
        array = np.from_dlpack(tensor)
        tensor.buffer.release()
        del tensor
    gc.collect()
    assert array.sum() == 499500
    out = ffi.new("uint64_t *")
    assert device.api.timeline.create(handle, 0, out) == 0
    del array
    gc.collect()
    assert device.api.timeline.create(handle, 0, out) != 0


def test_a_capsule_that_nobody_takes_lets_go(device: Device) -> None:
    """Of both kinds."""
    before = len(dlpack._live)
    tensor = device.upload(np.zeros(4, "f4"))
    for wishes in ({}, {"max_version": (1, 0)}):
        capsule = tensor.__dlpack__(**wishes)
        assert len(dlpack._live) == before + 1
        del capsule
        gc.collect()
        assert len(dlpack._live) == before


def test_a_copy_is_another_memory(device: Device) -> None:
    """When it is asked for."""
    tensor = device.upload(np.ones(8, "f4"))
    array = np.from_dlpack(tensor, copy=True)
    array[0] = 5
    assert device.download(tensor)[0] == 1


def test_what_dlpack_cannot_say_is_a_buffer_error(device: Device) -> None:
    """Blocks, a stream, another device."""
    tensor = device.empty((32,), "f4")
    with pytest.raises(BufferError, match="no Q8_0"):
        device.empty((2, 32), DType.Q8_0).__dlpack__()
    with pytest.raises(BufferError, match="no streams"):
        tensor.__dlpack__(stream=1)
    with pytest.raises(BufferError, match=r"not \(2, 0\)"):
        tensor.__dlpack__(dl_device=(2, 0))


@pytest.mark.parametrize("wrap", [lambda array: array, Plain], ids=["versioned", "plain"])
def test_the_device_works_on_numpys_memory(device: Device, queue: Queue, wrap: Any) -> None:
    """Without a copy: a fill is seen in the array, and the array in a copy command."""
    array = np.arange(64, dtype="f4").reshape(8, 8)
    tensor = device.from_dlpack(wrap(array))
    target = device.empty((8, 8), "f4")
    batch = Batch()
    batch.copy(target, tensor)
    batch.fill(tensor, 0x40000000)
    queue.submit(batch)
    queue.synchronize()
    assert (device.download(target) == np.arange(64).reshape(8, 8)).all()
    assert (array == 2).all()
    tensor.buffer.release()


@pytest.fixture(scope="module")
def examples_device() -> Iterator[Device]:
    """One device for all examples."""
    with open_device("cpu", trust_claims=True) as opened:
        yield opened


@given(
    shape=st.lists(st.integers(0, 5), min_size=0, max_size=4),
    steps=st.lists(st.integers(1, 3), min_size=4, max_size=4),
    start=st.integers(0, 2),
)
def test_any_view_comes_back_as_it_was(
    examples_device: Device, shape: list[int], steps: list[int], start: int
) -> None:
    """Sliced and transposed: numpy to us and back is the same memory and numbers."""
    whole = np.arange(np.prod([n * 3 + 2 for n in shape], dtype=int), dtype="i4")
    whole = whole.reshape([n * 3 + 2 for n in shape])
    slices = [slice(start, start + n * s, s) for n, s in zip(shape, steps, strict=False)]
    part = whole[(*slices, ...)].T
    tensor = examples_device.from_dlpack(part)
    assert tensor.shape == part.shape
    back = np.from_dlpack(tensor)
    assert (back == part).all()
    if part.size:
        assert back.ctypes.data == part.ctypes.data
        assert back.strides == part.strides or 1 in part.shape


def test_imported_memory_is_held_until_release(device: Device) -> None:
    """Not the tensor's end but its buffer's release, or closing, gives it back."""
    array = np.zeros(1000, "u1")
    seen = weakref.ref(array)
    tensor = device.from_dlpack(array)
    del array
    gc.collect()
    assert seen() is not None
    buffer = tensor.buffer
    del tensor
    gc.collect()
    assert seen() is not None
    buffer.release()
    gc.collect()
    assert seen() is None


def test_memory_is_given_back_once() -> None:
    """A second call does nothing: the owner's deleter frees."""
    array = np.zeros(100, "u1")
    seen = weakref.ref(array)
    elements, give_back = dlpack.take(array.__dlpack__(max_version=dlpack.VERSION))
    assert elements.shape == (100,)
    del array
    gc.collect()
    assert seen() is not None
    give_back()
    gc.collect()
    assert seen() is None
    give_back()


def test_closing_gives_imports_back() -> None:
    """Also those whose tensor nobody holds any more."""
    array = np.zeros(1000, "u1")
    seen = weakref.ref(array)
    with open_device("cpu", trust_claims=True) as device:
        device.from_dlpack(array)
        del array
        gc.collect()
        assert seen() is not None
    gc.collect()
    assert seen() is None


def test_what_cannot_be_imported_is_refused_and_given_back(device: Device) -> None:
    """Read-only, negative strides, types that we lack; the array is not held."""
    read_only = np.zeros(8, "f4")
    read_only.flags.writeable = False
    for array, words in (
        (read_only, "read-only"),
        (np.zeros(8, "f4")[::-1], "strides"),
        (np.zeros(8, "c8"), "type 0x"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            device.from_dlpack(array)
    capsule = np.zeros(4, "f4").__dlpack__()
    dlpack.take(capsule)[1]()
    with pytest.raises(InvalidArgument, match="consumed before"):
        dlpack.take(capsule)
    with pytest.raises(InvalidArgument, match="no DLPack capsule"):
        dlpack.take(7)
    with pytest.raises(InvalidArgument, match="a list has no __dlpack__"):
        device.from_dlpack([1, 2])


def test_an_uncertified_device_imports_nothing(device: Device) -> None:
    """pin_host must be relied on."""
    claims = device.info.capabilities - {"pin_host"}
    object.__setattr__(device.info, "capabilities", claims)
    with pytest.raises(Unsupported, match="no certified pin_host"):
        device.from_dlpack(np.zeros(4, "f4"))


def test_an_extent_that_overflows_is_refused(device: Device) -> None:
    """As another library may give it; its memory is given back."""

    class Giant:
        """Sixteen bytes that say they are more than there are addresses."""

        def __dlpack__(self, **_: object) -> object:
            raw = np.zeros(16, "u1")
            where = int(raw.ctypes.data)
            giant = dlpack.Elements(where, (1 << 62,), (1 << 62,), int(DType.F32))
            return dlpack.give(giant, raw, versioned=True)

    before = len(dlpack._live)
    with pytest.raises(InvalidArgument, match="in no memory"):
        device.from_dlpack(Giant())
    assert len(dlpack._live) == before


@pytest.mark.parametrize(
    ("shape", "strides"), [((2, 3, 4), (12, 4, 1)), ((2, 0, 4), (4, 4, 1)), ((), ())]
)
def test_no_strides_are_dense_rows(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    """As other libraries give them: a null pointer."""
    assert dlpack._strides(SimpleNamespace(strides=ffi.NULL), shape) == strides
