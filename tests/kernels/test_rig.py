"""The rig catches what a wrong kernel does: it is tested with wrong kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from bedplate.hal.api import Batch, Device, Range, Tensor
from bedplate.kernels.api import bf16_from_f32, select
from bedplate.kernels.errors import MismatchError
from bedplate.kernels.rig import DENSE, GUARD_BYTES, Layout, Rig

X, WEIGHT = np.ones((3, 8), np.float32), np.ones(8, np.float32)
Extra = Callable[[Batch, Sequence[Tensor]], None]


class Sabotaged:
    """An OpSet that does the op and then something it must not."""

    isa = "sabotaged"

    def __init__(self, device: Device, extra: Extra) -> None:
        self._ops, self._extra = select(device, isa="generic"), extra

    def record(self, batch: Batch, op: str, tensors: Sequence[Tensor], **attributes: float) -> None:
        """The op, then the sabotage."""
        self._ops.record(batch, op, tensors, **attributes)
        self._extra(batch, tensors)


def check(device: Device, extra: Extra, layout: Layout = DENSE, used: int | None = None) -> None:
    """rmsnorm of three rows under sabotage."""
    count = None if used is None else np.array([used], np.uint32)
    with device.queue() as queue:
        rig = Rig(device, queue, Sabotaged(device, extra))  # type: ignore[arg-type]
        rig.check("rmsnorm", [X, WEIGHT, count], out_shapes=[X.shape], layout=layout, eps=1e-5)


def fill(tensor: Tensor, offset: int, batch: Batch) -> None:
    """Zero four bytes of a tensor's buffer, counted from its first element."""
    batch.fill(Range(tensor.buffer, tensor.offset_bytes + offset, 4), 0)


def test_an_honest_op_passes(device: Device) -> None:
    """Nothing more than the op: accepted, dense and with gaps."""
    check(device, lambda batch, tensors: None)
    check(device, lambda batch, tensors: None, Layout(row_gap=5, offset=2), used=2)


@pytest.mark.parametrize("offset", [-4, 96, GUARD_BYTES, 96 + GUARD_BYTES - 4])
def test_writes_beside_the_output_are_caught(device: Device, offset: int) -> None:
    """One word before, right behind, further off, and the last that is watched."""
    with pytest.raises(MismatchError, match="bytes beside out were written"):
        check(device, lambda batch, tensors: fill(tensors[3], offset, batch))


def test_writes_between_rows_and_to_inputs_are_caught(device: Device) -> None:
    """The gap after a row belongs to somebody else, and so do inputs."""
    with pytest.raises(MismatchError, match="bytes beside out"):
        check(device, lambda batch, tensors: fill(tensors[3], 32, batch), Layout(row_gap=2))
    with pytest.raises(MismatchError, match="bytes beside weight"):
        check(device, lambda batch, tensors: fill(tensors[1], 4, batch))


def test_rows_past_count_and_wrong_values_are_caught(device: Device) -> None:
    """A row that is not in use keeps its poison; one wrong element is named."""
    with pytest.raises(MismatchError, match="rows past count were written"):
        check(device, lambda batch, tensors: fill(tensors[3], 64, batch), used=2)
    with pytest.raises(MismatchError, match=r"worst at \(1, 2\): got 0"):
        check(device, lambda batch, tensors: fill(tensors[3], 40, batch))


def test_an_output_that_is_never_written_stays_poison(device: Device) -> None:
    """Doing nothing cannot pass: the expected numbers are not NaN."""

    class Idle:
        isa = "idle"

        def record(self, batch: Batch, op: str, tensors: object, **attributes: float) -> None:
            """Nothing."""

    with device.queue() as queue, pytest.raises(MismatchError, match="got nan"):
        Rig(device, queue, Idle()).check(  # type: ignore[arg-type]
            "rmsnorm", [X, WEIGHT, None], out_shapes=[X.shape], eps=1e-5
        )


def test_layouts_put_matrices_apart_and_leave_vectors_alone(device: Device) -> None:
    """Gap and offset apply to matrices, in elements of the tensor's own format."""
    with device.queue() as queue:
        rig = Rig(device, queue, select(device, isa="generic"))
        layout = Layout(row_gap=3, offset=2)
        matrix = rig.place(bf16_from_f32(X), layout)
        assert (matrix.strides, matrix.offset_bytes) == ((11, 1), GUARD_BYTES + 4)
        vector = rig.place(WEIGHT, layout)
        assert (vector.strides, vector.offset_bytes) == ((1,), GUARD_BYTES)
        assert rig.poisoned((3,), "f32", layout).offset_bytes == GUARD_BYTES
        assert rig.poisoned((3, 8), "f32", layout).strides == (11, 1)
        assert np.isnan(rig.poisoned((3, 8), "f32", layout).view()).all()
