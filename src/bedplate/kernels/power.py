"""Could the tolerance tell a wrong kernel from a right one?

Four standard mistakes are made from the right output; a tolerance that accepts
one of them proves nothing about a kernel that passes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from bedplate.kernels.formats import Float64Array
from bedplate.kernels.tolerance import compare


def mistakes(
    expected: Float64Array, without_slice: Callable[[], Float64Array] | None = None
) -> Iterator[tuple[str, Float64Array]]:
    """Yield (name, wrong output): zeros, a shifted copy, a wrong tile, a dropped K-slice.

    `without_slice` computes the last from inputs whose last part of the summed
    axis is zeroed; ops that sum nothing leave it out.
    """
    yield "zeros", np.zeros_like(expected)
    yield "shifted copy", np.roll(expected, 1, axis=-1)
    tile = expected.copy()
    half = max(1, expected.shape[-1] // 2)
    tile[..., :half] = tile[..., ::-1][..., :half]
    yield "wrong tile", tile
    if without_slice is not None:
        yield "dropped K-slice", without_slice()


def accepted_mistakes(
    expected: Float64Array,
    bound: Float64Array,
    without_slice: Callable[[], Float64Array] | None = None,
) -> list[str]:
    """Names of the mistakes this bound would accept; empty is what a tolerance needs."""
    return [
        name
        for name, wrong in mistakes(expected, without_slice)
        if compare(wrong, expected, bound).accepted
    ]
