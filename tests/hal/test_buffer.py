"""Buffers, their numpy views, and tensors over them."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from bedplate.hal.api import Device, DType, InvalidArgument, OutOfDeviceMemory, Tensor
from bedplate.hal.native import new


def test_a_device_counts_what_it_gave(device: Device) -> None:
    """What is asked for beyond the rest is refused with both numbers; what is released is back."""
    total, kept = device.info.memory_bytes, device.allocate(1 << 20)
    left = total - (1 << 20)
    with pytest.raises(OutOfDeviceMemory, match=f"{left + 1} bytes .* {left} of {total} are left"):
        device.allocate(left + 1)
    kept.release()
    with pytest.raises(OutOfDeviceMemory, match=f"{total} of {total} are left"):
        device.allocate(total + 1)


def test_a_view_is_the_memory(device: Device) -> None:
    """Two views show the same bytes."""
    buffer = device.allocate(16)
    buffer.view("u4")[:] = 0x01020304
    assert buffer.view("u1", (4,), 4).tolist() == [4, 3, 2, 1]


@pytest.mark.parametrize(
    ("shape", "offset"), [((5,), 0), ((4,), 1), (None, -4), ((2, 3), 0), ((-1,), 0)]
)
def test_a_view_past_the_end_is_refused(
    device: Device, shape: tuple[int, ...] | None, offset: int
) -> None:
    """Sixteen bytes hold four words and no more."""
    with pytest.raises(InvalidArgument, match="outside a buffer of 16"):
        device.allocate(16).view("u4", shape, offset)


def test_released_storage_lives_while_a_view_does(device: Device) -> None:
    """Release makes the buffer unusable at once, not the numbers already seen."""
    buffer = device.allocate(16)
    view = buffer.view("u4")
    view[:] = 7
    buffer.release()
    buffer.release()
    assert view.tolist() == [7, 7, 7, 7]
    with pytest.raises(InvalidArgument, match="released"):
        buffer.view("u4")


def test_the_last_view_gives_released_memory_back(device: Device) -> None:
    """Until then the native handle is live, afterwards it is stale."""
    buffer = device.allocate(16)
    first, second, handle = buffer.view("u1"), buffer.view("u4"), buffer.handle
    buffer.release()
    del first
    gc.collect()
    info = new("bp_memory_info")
    assert device.api.mem.describe(device.handle, handle, info) == 0
    assert second.size == 4
    del second
    gc.collect()
    assert device.api.mem.describe(device.handle, handle, info) < 0


def test_strides_count_elements(device: Device) -> None:
    """A transposed tensor is the same memory seen the other way."""
    array = np.arange(6, dtype="f4").reshape(2, 3)
    tensor = device.upload(array)
    turned = Tensor(tensor.buffer, 0, (3, 2), "f4", (1, 3))
    np.testing.assert_array_equal(turned.view(), array.T)


def test_bfloat16_is_seen_as_bits(device: Device) -> None:
    """numpy has no bf16: its view is uint16."""
    tensor = device.empty((2, 2), DType.BF16)
    assert tensor.view().dtype == np.uint16
    assert tensor.extent_bytes == 8


def test_block_rows_are_seen_as_bytes(device: Device) -> None:
    """A row of 64 elements of Q8_0 is two blocks of 34 bytes; strides are elements."""
    tensor = device.empty((3, 64), DType.Q8_0)
    assert tensor.view().shape == (3, 68)
    tensor.view()[...] = np.arange(3, dtype="u1")[:, None]
    second = Tensor(tensor.buffer, 68, (2, 64), DType.Q8_0, (64, 1))
    assert second.view()[:, 0].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("offset", "shape", "dtype", "strides"),
    [
        (0, (5,), "f4", None),
        (4, (4,), "f4", None),
        (-4, (1,), "f4", None),
        (0, (-1,), "f4", None),
        (0, (2,), "f4", (-1,)),
        (0, (2,), "f4", (4,)),
        (0, (2, 2), "f4", (1,)),
        (0, (33,), DType.Q8_0, None),
        (0, (32,), DType.Q8_0, None),
    ],
)
def test_a_tensor_that_leaves_its_buffer_is_refused(
    device: Device,
    offset: int,
    shape: tuple[int, ...],
    dtype: DType | str,
    strides: tuple[int, ...] | None,
) -> None:
    """Sizes, strides and broken blocks are checked against 16 bytes."""
    with pytest.raises(InvalidArgument):
        Tensor(device.allocate(16), offset, shape, dtype, strides)


def test_unknown_dtypes_are_refused(device: Device) -> None:
    """complex and made-up names, with the known ones in the remedy."""
    with pytest.raises(InvalidArgument, match="complex64"):
        device.empty((1,), "c8")
    with pytest.raises(InvalidArgument, match="not a dtype"):
        device.empty((1,), "nonsense")


def test_a_shape_whose_bytes_overflow_is_refused(device: Device) -> None:
    """2^64 elements are not none."""
    with pytest.raises(InvalidArgument, match="outside a buffer"):
        device.allocate(64).view("u1", (1 << 32, 1 << 32))
