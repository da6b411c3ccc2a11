"""An op: its schema, its reference, its error bound and its cost, under one name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bedplate.kernels.formats import Array, BlockArray, Float64Array
from bedplate.kernels.schema import Schema

HostTensor = Array | BlockArray
"""A tensor on the host: a numpy array (bf16 as uint16) or GGUF blocks."""


@dataclass(frozen=True)
class Op:
    """One row of the vocabulary with its proof.

    `reference` and `bound` take the readable tensors in schema order and the
    attributes by keyword; `bound` also takes `out_format`. `reference` returns
    the written tensors in order: one array, or a tuple.
    """

    schema: Schema
    reference: Callable[..., Any]
    bound: Callable[..., Float64Array]
    cost: Callable[..., tuple[int, int]]

    @property
    def name(self) -> str:
        """The op's name in the vocabulary."""
        return self.schema.name

    def outputs(
        self, inputs: Sequence[HostTensor | None], attributes: dict[str, float | int]
    ) -> tuple[Array, ...]:
        """The reference's written tensors, always as a tuple."""
        result = self.reference(*inputs, **attributes)
        return result if isinstance(result, tuple) else (result,)
