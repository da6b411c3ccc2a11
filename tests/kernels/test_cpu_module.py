"""What the tuned levels refuse, and the layouts at the edge that they take."""

import pytest

from bedplate.hal.api import Device, DType, Tensor
from bedplate.kernels import launches
from bedplate.kernels.api import LEVELS, IsaError, OpSet, levels_of, select
from bedplate.kernels.call import make_call
from bedplate.kernels.launches import ROW_BLOCK_BYTES, Launch, activation_row_bytes
from bedplate.kernels.registry import get


@pytest.fixture(scope="module")
def tuned(device: Device) -> OpSet:
    """The best tuned level of this machine."""
    if levels_of(device) == LEVELS[:1]:
        pytest.skip("NOT RUN: this processor has no tuned level")
    try:
        return select(device, isa=levels_of(device)[-1])
    except IsaError as reason:
        pytest.skip(f"NOT RUN: {reason}")


def chosen(ops: OpSet, op: str, tensors: list[Tensor | None], **attributes: float) -> str:
    """The reason of the first implementation's refusal, or `chosen`."""
    first = ops.explain(op, tensors, **attributes).splitlines()[0]
    return first.partition(f"{ops.isa}: ")[2].removeprefix("refused: ")


def f32(device: Device, *shape: int, strides: list[int] | None = None) -> Tensor:
    """A float32 tensor with room for any small strides."""
    if strides is None:
        return device.empty(shape, DType.F32)
    return Tensor(device.allocate(1 << 16), 0, shape, DType.F32, strides)


def test_the_last_dimension_must_be_dense(tuned: OpSet, device: Device) -> None:
    """Gaps between elements are refused; a dimension of one element has none."""
    weight = f32(device, 8)
    gaps = f32(device, 2, 8, strides=[16, 2])
    assert (
        chosen(tuned, "rmsnorm", [gaps, weight, None, f32(device, 2, 8)])
        == "x is not dense in its last dimension"
    )
    single = f32(device, 2, 1, strides=[5, 3])
    assert chosen(tuned, "rmsnorm", [single, f32(device, 1), None, f32(device, 2, 1)]) == "chosen"


def attention(
    device: Device, dim: int, size: int, heads: int, kv_heads: int
) -> list[Tensor | None]:
    """Tensors of one call."""
    cache = f32(device, 2, kv_heads, size, dim)
    ints = [device.empty(shape, DType.I32) for shape in ((1, 2), (2,), (1,))]
    q, out = f32(device, 3, heads, dim), f32(device, 3, heads, dim)
    return [q, cache, f32(device, 2, kv_heads, size, dim), *ints, None, out]


@pytest.mark.parametrize(
    ("dim", "size", "heads", "kv_heads", "words"),
    [
        (128, 16, 32, 1, "chosen"),
        (144, 16, 1, 1, "head dimension 144"),
        (24, 16, 1, 1, "head dimension 24"),
        (64, 8, 1, 1, "block size 8"),
        (64, 16, 33, 1, "33 heads over 1"),
        (64, 16, 5, 2, "5 heads over 2"),
    ],
)
def test_attention_limits(
    tuned: OpSet, device: Device, dim: int, size: int, heads: int, kv_heads: int, words: str
) -> None:
    """Multiples of 16 up to 128, groups up to 32."""
    assert words in chosen(
        tuned, "paged_attention", attention(device, dim, size, heads, kv_heads), scale=1.0
    )


def test_block_copies_take_any_number_of_heads(tuned: OpSet, device: Device) -> None:
    """A block is one piece, however it is divided."""
    pairs, shape = device.empty((1, 2), DType.I32), (2, 4, 3, 16, 8)
    caches = [device.empty(shape, DType.F32) for _ in range(2)]
    assert chosen(tuned, "block_copy", [pairs, None, *caches]) == "chosen"


def test_caches_must_be_dense(tuned: OpSet, device: Device) -> None:
    """A cache with gaps is refused by name; extents of one may have any stride."""
    tensors = attention(device, 64, 16, 2, 1)
    tensors[2] = f32(device, 2, 1, 16, 64, strides=[2048, 1024, 64, 1])
    assert chosen(tuned, "paged_attention", tensors, scale=1.0) == "v_cache is not dense"
    tensors[2] = f32(device, 2, 1, 16, 64, strides=[1024, 7, 64, 1])
    assert chosen(tuned, "paged_attention", tensors, scale=1.0) == "chosen"


def test_block_copy_wants_alike_caches(tuned: OpSet, device: Device) -> None:
    """K and V with equal blocks and formats, layers as far apart as one likes."""
    pairs = device.empty((1, 2), DType.I32)
    k = f32(device, 2, 3, 1, 16, 4)
    apart = f32(device, 2, 3, 1, 16, 4, strides=[500, 64, 64, 4, 1])
    assert chosen(tuned, "block_copy", [pairs, None, k, apart]) == "chosen"
    wide = f32(device, 2, 3, 1, 16, 4, strides=[500, 65, 64, 4, 1])
    assert (
        chosen(tuned, "block_copy", [pairs, None, k, wide])
        == "k_cache and v_cache differ in layout"
    )
    other = device.empty((2, 3, 1, 16, 4), DType.BF16)
    assert (
        chosen(tuned, "block_copy", [pairs, None, k, other])
        == "k_cache and v_cache differ in layout"
    )
    gappy = Tensor(device.allocate(1 << 12), 0, (1, 2), DType.I32, (4, 2))
    assert "pairs is not dense" in chosen(tuned, "block_copy", [gappy, None, k, apart])


def test_rope_and_convert_limits(tuned: OpSet, device: Device) -> None:
    """Heads of 512 are the largest; a conversion to the same format is none of ours."""
    positions = device.empty((1,), DType.I32)
    for dim, words in ((512, "chosen"), (514, "head dimension 514 is above 512")):
        tensors = [f32(device, 1, 1, dim), positions, f32(device, dim // 2), None]
        assert chosen(tuned, "rope", tensors) == words
    same = [f32(device, 1, 4), None, f32(device, 1, 4)]
    assert chosen(tuned, "convert", same) == "x and out have the same format"


def test_rows_of_activations_are_aligned() -> None:
    """K codes, K/32 scales and corrections of 4 bytes, rounded up to 64 bytes."""
    assert [activation_row_bytes(k) for k in (0, 32, 64, 576)] == [0, 64, 128, 768]


@pytest.mark.parametrize(("tokens", "kv_heads", "grid"), [(3, 5, 15), (100, 3, 256), (1, 1, 1)])
def test_attention_is_shared_by_tokens_and_heads(
    device: Device, tokens: int, kv_heads: int, grid: int
) -> None:
    """A block for each pair, up to what keeps every thread busy."""
    tensors = attention(device, 16, 16, kv_heads, kv_heads)
    tensors[0], tensors[-1] = (f32(device, tokens, kv_heads, 16) for _ in range(2))
    call = make_call(get("paged_attention").schema, tensors, {"scale": 1.0})
    assert [launch.grid for launch in launches.paged_attention(call, None)] == [grid]


def test_small_row_grids_wake_nobody() -> None:
    """A row-wise grid has a block per 16 KiB, at least one and at most one per row."""
    grid = launches._row_grid
    assert [grid(1, 100), grid(0, 100), grid(8, ROW_BLOCK_BYTES * 2)] == [1, 1, 8]
    assert grid(64, ROW_BLOCK_BYTES // 4) == 16
    assert Launch("k", 1, ()).shared_bytes == 0
