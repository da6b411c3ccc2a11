"""The references and bounds as the `OpOracle` that hal's conformance suite asks.

A block format crosses as the bytes of its rows; which of the formats it is
follows from the bytes of a row, whose elements the other tensor tells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bedplate.kernels.formats import BLOCK_ELEMENTS, BLOCK_FORMATS, Array, BlockArray
from bedplate.kernels.registry import get


class ReferenceOracle:
    """The numpy references. Arrays are f32, bf16 as uint16, integers, or block rows as uint8."""

    def reference(
        self, op: str, arrays: Sequence[Array | None], attributes: Mapping[str, Any]
    ) -> Sequence[Array]:
        """The outputs in the op's order. Raises a `KernelsError` for what is no such op."""
        result = get(op).reference(*_given(op, arrays), **attributes)
        return result if isinstance(result, tuple) else (result,)

    def bound(
        self, op: str, arrays: Sequence[Array | None], attributes: Mapping[str, Any]
    ) -> Sequence[npt.NDArray[np.float64]]:
        """The bound of each output. Exact outputs beside a bounded one have 0."""
        given = _given(op, arrays)
        result = get(op).reference(*given, **attributes)
        bound = get(op).bound(*given, **attributes)
        if not isinstance(result, tuple):
            return (bound,)
        exact = np.zeros(())
        return [bound if part.dtype.kind == "f" and op == "sample" else exact for part in result]


def _given(op: str, arrays: Sequence[Array | None]) -> list[Any]:
    given: list[Any] = list(arrays)
    if op == "quantized_matmul" and given[1] is not None:
        given[1] = _blocks(given[1], given[0].shape[1])
    return given


def _blocks(rows: Array, columns: int) -> BlockArray:
    row_bytes = {f.block_bytes * columns // BLOCK_ELEMENTS: f for f in BLOCK_FORMATS.values()}
    return BlockArray(row_bytes[rows.shape[1]], rows, (rows.shape[0], columns))
