import numpy as np
import pytest

from bedplate.hal.api import Batch, Device, DType
from bedplate.kernels.api import (
    BLOCK_FORMATS,
    DtypeError,
    NoImplementationError,
    Packed,
    ShapeError,
    UnknownOpError,
    encode_blocks,
)
from bedplate.kernels.rig import Rig

ONES = np.ones((3, 64), np.float32)


def test_pack_gives_a_packed_weight_of_the_asked_format(rig: Rig) -> None:
    """float32 or bf16 bits in, either out; GGUF rows in any shape of bytes."""
    for source in (ONES, np.full((3, 64), 0x3F80, np.uint16)):
        for dtype in (DType.F32, DType.BF16):
            packed = rig.ops.pack("matmul", source, dtype)
            assert isinstance(packed, Packed)
            assert (packed.op, packed.format, packed.shape) == (
                "matmul",
                dtype.name.lower(),
                (3, 64),
            )
    flat = rig.ops.pack("matmul", ONES.ravel(), DType.F32, (3, 64))
    assert flat.shape == (3, 64)
    blocks = encode_blocks(ONES, BLOCK_FORMATS["q4_1"])
    packed = rig.ops.pack("quantized_matmul", blocks.data.ravel(), DType.Q4_1, (3, 64))
    assert (packed.op, packed.format, packed.shape) == ("quantized_matmul", "q4_1", (3, 64))


def test_pack_refuses_what_is_no_weight(rig: Rig) -> None:
    """An op without weights, a format that does not fit, a size that is no row."""
    pack = rig.ops.pack
    with pytest.raises(UnknownOpError, match="mat_mul"):
        pack("mat_mul", ONES, DType.F32)
    with pytest.raises(ShapeError, match="rmsnorm has no weights"):
        pack("rmsnorm", ONES, DType.F32)
    with pytest.raises(DtypeError, match="cannot pack numpy float64 as F32"):
        pack("matmul", ONES.astype(np.float64), DType.F32)
    with pytest.raises(DtypeError, match="as I8"):
        pack("matmul", ONES, DType.I8)
    with pytest.raises(ShapeError, match=r"192 elements are no \[3, 65\]"):
        pack("matmul", ONES, DType.F32, (3, 65))
    with pytest.raises(ShapeError, match="rank 1"):
        pack("matmul", ONES.ravel(), DType.F32)
    with pytest.raises(DtypeError, match="weights are f32, accepted: q8_0"):
        pack("quantized_matmul", ONES, DType.F32, (3, 64))
    with pytest.raises(ShapeError, match="needs the shape"):
        pack("quantized_matmul", np.zeros(68, np.uint8), DType.Q8_0)
    with pytest.raises(ShapeError, match="69 bytes are no 2 rows"):
        pack("quantized_matmul", np.zeros(69, np.uint8), DType.Q8_0, (2, 32))
    with pytest.raises(ShapeError, match=r"uint8 \[2, 34\]"):
        pack("quantized_matmul", np.zeros(70, np.uint8), DType.Q8_0, (2, 32))


def test_a_refused_record_leaves_the_batch_alone(rig: Rig) -> None:
    """Nothing is appended when the shapes do not fit."""
    batch = Batch()
    x = rig.device.empty((2, 8), DType.F32)
    with pytest.raises(ShapeError, match="weight is 7 long in axis 0, expected H with H = 8"):
        rig.ops.record(batch, "rmsnorm", [x, rig.device.empty((7,), DType.F32), None, x], eps=1e-5)
    assert len(batch) == 0


def test_scratch_memory_grows_and_serves_all_records(rig: Rig) -> None:
    """workspace_bytes tells what a record uses; a small op after a large one needs no more."""
    width = 1000

    def tensors(rows: int) -> list[object]:
        d = rig.device
        return [d.empty((rows, width), DType.F32), d.empty((rows, 64), DType.U8), None,
                d.empty((rows,), DType.I32), None]  # fmt: skip

    few, many = (rig.ops.workspace_bytes("sample", tensors(n)) for n in (1, 4))
    assert few > 0
    assert many == 4 * few
    x = rig.device.empty((2, 8), DType.F32)
    out = rig.device.empty((2, 8), DType.F32)
    norm = [x, rig.device.empty((8,), DType.F32), None, out]
    assert rig.ops.workspace_bytes("rmsnorm", norm, eps=1e-5) == 0


def test_what_nothing_runs_is_an_error_with_every_reason(rig: Rig) -> None:
    """A head dimension above every limit: each implementation says why."""
    d = rig.device
    q = d.empty((1, 1, 512), DType.F32)
    cache = d.empty((1, 1, 16, 512), DType.F32)
    tensors = [q, cache, cache, d.empty((1, 1), DType.I32), d.empty((2,), DType.I32),
               d.empty((1,), DType.I32), None, d.empty((1, 1, 512), DType.F32)]  # fmt: skip
    with pytest.raises(
        NoImplementationError, match="generic: paged_attention takes heads"
    ) as caught:
        rig.ops.record(Batch(), "paged_attention", tensors, scale=1.0)
    assert caught.value.exit_code == 3
    assert "refused: " in rig.ops.explain("paged_attention", tensors, scale=1.0)


def test_unusual_layouts_fall_to_the_portable_level(rig: Rig, device: Device) -> None:
    """What a tuned level refuses still runs, on the level behind it, with the reason in explain."""
    if rig.ops.isa == "generic":
        return
    x = device.empty((2, 3, 600), DType.F32)
    positions, frequency = device.empty((2,), DType.I32), device.empty((300,), DType.F32)
    lines = rig.ops.explain("rope", [x, positions, frequency, None]).splitlines()
    assert "head dimension 600 is above 512" in lines[0]
    plain = [device.empty((2, 8), DType.F32), device.empty((8, 4), DType.F32), None, None, None,
             device.empty((2, 4), DType.F32)]  # fmt: skip
    lines = rig.ops.explain("matmul", plain).splitlines()
    assert lines == [
        f"matmul on {device.id}, {rig.ops.isa}: refused: b is not packed",
        f"matmul on {device.id}, generic: chosen",
    ]
    a, b = np.float32([[1, 2]]), np.float32([[3, 4, 5], [6, 7, 8]])
    (out,) = rig.run("matmul", [a, b, None, None, None], out_shapes=[(1, 3)])
    assert out.tolist() == [[15, 18, 21]]
