"""The contract of a set of implementations for one device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bedplate.hal.api import Batch, Buffer, DType, Tensor
from bedplate.kernels.call import Call
from bedplate.kernels.formats import Array, BlockArray
from bedplate.kernels.pack import Packed


class TensorSource(Protocol):
    """Where packed weights come from: a device, or a pool of its memory."""

    def empty(self, shape: Sequence[int], dtype: DType) -> Tensor:
        """A dense tensor with undefined content."""


class Implementation(Protocol):
    """One way to run ops on a device: a native module, or the backend's own ops.

    Pure judgement: `refuses` depends on shapes, strides, formats and
    attributes only, so a choice may be remembered.
    """

    name: str

    def refuses(self, call: Call) -> str | None:
        """Why it cannot run this call, or None when it can."""

    def workspace_bytes(self, call: Call) -> int:
        """Scratch memory that recording this call needs; 0 for none."""

    def record(self, batch: Batch, call: Call, workspace: Buffer | None) -> None:
        """Append the commands of an accepted call. No device work happens here."""

    def pack(self, op: str, weight: Array | BlockArray, dtype: DType) -> Packed:
        """Weights [N,K] uploaded in the layout it reads."""
