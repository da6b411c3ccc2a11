"""Tensors from a pool, for what lives as long as the device is in use.

    weights = PoolTensors(memory, "weights", stream)
    table = weights.empty((1000, 64), DType.F32)

A tensor does not own its block: the blocks go back when the allocator closes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bedplate.hal.api import Device, DType, Tensor, as_dtype
from bedplate.runtime.allocator import Allocator, Stream
from bedplate.runtime.errors import OptionsInvalid


class PoolTensors:
    """Makes tensors in one pool, as `hal.Device` makes them in buffers of their own."""

    def __init__(self, memory: Allocator, pool: str, stream: Stream) -> None:
        if memory.device is None:
            raise OptionsInvalid("a device of numbers holds no tensors")
        self.device: Device = memory.device
        self._pool, self._stream = memory.pool(pool), stream

    def empty(self, shape: Sequence[int], dtype: DType | DTypeLike) -> Tensor:
        """A dense tensor with undefined content. Raises OutOfMemory."""
        kind = as_dtype(dtype)
        elements = int(np.prod([int(size) for size in shape], dtype=object))
        place = self._pool.allocate(max(kind.row_bytes(elements), 1), self._stream).range
        return Tensor(place.buffer, place.offset, shape, kind)

    def upload(self, array: NDArray[Any]) -> Tensor:
        """A dense tensor with the array's elements; waits."""
        dense = np.ascontiguousarray(array)
        tensor = self.empty(dense.shape, dense.dtype)
        self.device.write(tensor, dense)
        return tensor
