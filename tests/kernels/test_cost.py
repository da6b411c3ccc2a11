"""What an op must move and compute at least, counted from arrays of small sizes."""

from __future__ import annotations

import numpy as np
import pytest

from bedplate.kernels.registry import get

F32, BF16 = np.float32, np.uint16


def bytes_of(*arrays: tuple[tuple[int, ...], type]) -> int:
    """Of arrays of these shapes and types."""
    return sum(int(np.prod(shape)) * np.dtype(kind).itemsize for shape, kind in arrays)


@pytest.mark.parametrize(
    ("name", "arguments", "moved", "computed"),
    [
        # 3 pairs, 2 layers, blocks of 40 bytes: K and V, read and written.
        ("block_copy", (3, 2, 40), 2 * 2 * 3 * 2 * 40, 0),
        ("convert", (3, 5), bytes_of(((3, 5), F32), ((3, 5), BF16)), 0),
        # Rows of 34 bytes are read, rows of 32 float32 written.
        ("embedding", (3, 32, 34), 3 * 34 + bytes_of(((3, 32), F32)), 0),
        ("kv_write", (3, 2, 8, 2), 2 * bytes_of(((3, 2, 8), F32), ((3, 2, 8), BF16)), 0),
        (
            "matmul",
            (3, 5, 7, 70),
            bytes_of(((3, 7), F32), ((3, 5), F32)) + 70,
            3 * 5 * (7 + 7),  # a product and an addition for each term
        ),
        # 2 queries on a context of 9, 4 heads over 2, of 8; K and V in bf16.
        (
            "paged_attention",
            (2, 9, 4, 2, 8, 2),
            2 * bytes_of(((9, 2, 8), BF16)) + 2 * bytes_of(((2, 4, 8), F32)),
            2 * 4 * 9 * (2 * 8 + 2 * 8),  # q·k and p·v
        ),
        ("quantized_matmul", (3, 5, 32, 170), bytes_of(((3, 32), F32), ((3, 5), F32)) + 170, 960),
        ("reduce", (3, 5), bytes_of(((3, 5), F32), ((3,), F32)), 15),
        # x read, y written, the weight read; square, add, scale, weigh.
        ("rmsnorm", (3, 5), bytes_of(((3, 5), F32), ((3, 5), F32), ((5,), F32)), 60),
        ("rope", (3, 2, 8), 2 * bytes_of(((3, 2, 8), F32)), 3 * 48),
        ("sample", (3, 5), bytes_of(((3, 5), F32)), 45),
        ("silu_mul", (3, 5), bytes_of(((3, 10), F32), ((3, 5), F32)), 75),
        ("softmax", (3, 5), 2 * bytes_of(((3, 5), F32)), 60),
    ],
)
def test_costs_are_those_of_the_arrays(
    name: str, arguments: tuple[int, ...], moved: int, computed: int
) -> None:
    """(bytes, FLOP), each tensor once."""
    assert get(name).cost(*arguments) == (moved, computed)
