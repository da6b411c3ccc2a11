"""Every op against its reference, at every implementation level."""

import numpy as np
import pytest

from bedplate.hal.api import DType
from bedplate.kernels.api import BLOCK_FORMATS, bf16_from_f32, encode_blocks
from bedplate.kernels.rig import DENSE, MISALIGNED, STRIDED, Layout, Rig

LAYOUTS = pytest.mark.parametrize(
    "layout", [DENSE, STRIDED, MISALIGNED], ids=["dense", "strided", "misaligned"]
)
RNG = np.random.default_rng(11)


def normal(*shape: int) -> np.ndarray:
    """Standard normal float32."""
    return RNG.standard_normal(shape).astype(np.float32)


def count(value: int | None) -> np.ndarray | None:
    """A count tensor."""
    return None if value is None else np.array([value], np.uint32)


@LAYOUTS
@pytest.mark.parametrize(("rows", "used"), [(1, None), (7, None), (7, 3), (5, 0), (0, None)])
@pytest.mark.parametrize("out_format", ["f32", "bf16"])
def test_rmsnorm(rig: Rig, layout: Layout, rows: int, used: int | None, out_format: str) -> None:
    """Ragged widths, rows apart, unaligned, fewer rows in use than held."""
    for width in (1, 15, 64, 576):
        rig.check(
            "rmsnorm",
            [normal(rows, width), normal(width), count(used)],
            out_shapes=[(rows, width)],
            out_format=out_format,
            layout=layout,
            eps=1e-5,
        )


@LAYOUTS
@pytest.mark.parametrize("out_format", ["f32", "bf16"])
@pytest.mark.parametrize(("rows", "used"), [(1, None), (6, 4), (0, None)])
def test_silu_mul(rig: Rig, layout: Layout, out_format: str, rows: int, used: int | None) -> None:
    """Normal and extreme gates."""
    for width in (1, 24, 1536):
        gate_up = normal(rows, 2 * width) * 4
        if rows:
            gate_up[0, 0] = -200.0
            gate_up[0, width - 1] = 90.0
        rig.check(
            "silu_mul",
            [gate_up, count(used)],
            out_shapes=[(rows, width)],
            out_format=out_format,
            layout=layout,
        )


@LAYOUTS
@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_softmax(rig: Rig, layout: Layout, scale: float) -> None:
    """Ordinary rows, a flat row, an overflowing one, and a NaN that stays in its row."""
    for width in (1, 37, 512):
        x = normal(6, width) * 20
        x[1], x[2, 0], x[3, width // 2] = 0.5, 3e38, np.nan
        rig.check("softmax", [x, count(5)], out_shapes=[x.shape], layout=layout, scale=scale)


@LAYOUTS
def test_reduce(rig: Rig, layout: Layout) -> None:
    """Ragged widths, none at all included."""
    for width in (0, 1, 37, 512):
        rig.check("reduce", [normal(6, width), count(5)], out_shapes=[(6,)], layout=layout)


@LAYOUTS
def test_convert(rig: Rig, layout: Layout) -> None:
    """Both directions exactly, ties and special values included."""
    x = normal(5, 37)
    x[0, :6] = [1.00390625, 1.01171875, np.inf, -np.inf, np.nan, 1e-40]
    rig.check("convert", [x, count(4)], out_shapes=[x.shape], out_format="bf16", layout=layout)
    half = bf16_from_f32(x)
    rig.check("convert", [half, None], out_shapes=[x.shape], out_format="f32", layout=layout)


@LAYOUTS
@pytest.mark.parametrize("kind", ["f32", "bf16", "q8_0", "q4_0", "q4_1"])
def test_embedding(rig: Rig, layout: Layout, kind: str) -> None:
    """Every table format, repeated ids, fewer tokens in use than held."""
    table = normal(9, 96)
    held = {"f32": lambda: table, "bf16": lambda: bf16_from_f32(table)}.get(
        kind, lambda: encode_blocks(table, BLOCK_FORMATS[kind])
    )()
    ids = np.array([8, 0, 3, 3, 99], np.int32)
    rig.check("embedding", [held, ids, count(4)], out_shapes=[(5, 96)], layout=layout)


@LAYOUTS
@pytest.mark.parametrize("a_kind", ["f32", "bf16"])
@pytest.mark.parametrize("b_kind", ["f32", "bf16"])
@pytest.mark.parametrize("out_format", ["f32", "bf16"])
def test_matmul(rig: Rig, layout: Layout, a_kind: str, b_kind: str, out_format: str) -> None:
    """Packed weights; ragged M, N and K, bias, residual and count."""
    cast = {"f32": np.asarray, "bf16": bf16_from_f32}
    for m, n, k, used in [
        (1, 16, 64, None),
        (3, 33, 7, 2),
        (13, 70, 129, 12),
        (26, 17, 64, 25),
        (4, 5, 0, None),
    ]:
        a, w = cast[a_kind](normal(m, k)), cast[b_kind](normal(n, k))
        packed = rig.ops.pack("matmul", w, DType[b_kind.upper()])
        for bias, residual in [(None, None), (normal(n), normal(m, n))]:
            rig.check(
                "matmul",
                [a, w.T, bias, residual, count(used)],
                out_shapes=[(m, n)],
                out_format=out_format,
                layout=layout,
                weight=packed,
            )


@LAYOUTS
@pytest.mark.parametrize("kind", BLOCK_FORMATS)
@pytest.mark.parametrize("a_kind", ["f32", "bf16"])
@pytest.mark.parametrize("activation", [0, 1])
def test_quantized_matmul(
    rig: Rig, layout: Layout, kind: str, a_kind: str, activation: int
) -> None:
    """Every block format in both precision classes; ragged M and N, bias, residual, count."""
    cast = {"f32": np.asarray, "bf16": bf16_from_f32}[a_kind]
    for m, n, k, used in [(1, 48, 64, None), (2, 7, 32, None), (9, 40, 96, 8), (27, 33, 160, 26)]:
        w = encode_blocks(normal(n, k), BLOCK_FORMATS[kind])
        packed = rig.ops.pack("quantized_matmul", w.data, DType[kind.upper()], (n, k))
        for bias, residual in [(None, None), (normal(n), normal(m, n))]:
            rig.check(
                "quantized_matmul",
                [cast(normal(m, k)), w, bias, residual, count(used)],
                out_shapes=[(m, n)],
                layout=layout,
                weight=packed,
                activation=activation,
            )


def test_a_nan_stays_in_its_row(rig: Rig) -> None:
    """One NaN activation makes its own row NaN in every product, and no other; zeros stay zero."""
    a = normal(14, 64)
    a[5, 33], a[7] = np.nan, 0
    w = normal(40, 64)
    blocks = encode_blocks(w, BLOCK_FORMATS["q4_1"])
    runs = [
        ("matmul", w.T, rig.ops.pack("matmul", w, DType.F32), {}),
        ("matmul", bf16_from_f32(w).T, rig.ops.pack("matmul", w, DType.BF16), {}),
    ]
    packed = rig.ops.pack("quantized_matmul", blocks.data, DType.Q4_1, (40, 64))
    runs += [("quantized_matmul", blocks, packed, {"activation": k}) for k in (0, 1)]
    for name, weight, pack, attributes in runs:
        for cast in (np.asarray, bf16_from_f32):
            inputs = [cast(a), weight, None, None, None]
            (out,) = rig.run(name, inputs, out_shapes=[(14, 40)], weight=pack, **attributes)
            assert np.isnan(out[5]).all()
            assert np.isfinite(np.delete(out, 5, axis=0)).all()
            assert not out[7].any()


def test_large_and_tiny_activations_survive_int8(rig: Rig) -> None:
    """Blocks of subnormals count as zero, blocks near the largest float keep their scale."""
    a = normal(3, 64)
    a[0] *= np.float32(1e-41)
    a[1] *= np.float32(5e37)
    w = encode_blocks(normal(16, 64) / 8, BLOCK_FORMATS["q8_0"])
    packed = rig.ops.pack("quantized_matmul", w.data, DType.Q8_0, (16, 64))
    inputs = [a, w, None, None, None]
    (out,) = rig.run("quantized_matmul", inputs, out_shapes=[(3, 16)], weight=packed, activation=1)
    assert np.abs(out[0]).max() < 1e-37
    rig.check(
        "quantized_matmul", [a[1:], *inputs[1:]], out_shapes=[(2, 16)], weight=packed, activation=1
    )
