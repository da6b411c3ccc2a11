"""Weights in the layout an implementation reads, made once at load.

Panels: 16 output columns side by side, so that a kernel reads one sequential
stream and one broadcast activation meets 16 outputs. The native side of each
layout is described in `native/kernels/cpu/matmul.c` and `blocks.h`, and made by
`native/kernels/cpu/pack.c`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bedplate.hal.api import Tensor
from bedplate.kernels.formats import BLOCK_ELEMENTS, BLOCK_FORMATS

PANEL = 16
"""Output columns of one panel."""


@dataclass(frozen=True)
class Packed:
    """Weights of `op` on a device: logical shape [N,K], element format, private layout.

    `layout` is "rows" (row-major, as in the file) or "panels". Stands for the
    weight tensor in `OpSet.record`; its facts are those of [K,N] for `matmul`
    and [N,K] for `quantized_matmul`.
    """

    op: str
    format: str
    shape: tuple[int, int]
    layout: str
    tensor: Tensor

    @property
    def bytes(self) -> int:
        """Device bytes that one pass over the weights reads."""
        return self.tensor.extent_bytes


def panel_shape(op: str, format: str, n: int, k: int) -> tuple[int, ...]:
    """Shape of the panels of [N,K] weights.

    "matmul": f32 [panels,K,16], bf16 [panels,ceil(K/2),16,2]. "quantized_matmul":
    uint8 [panels,K/32,bytes], `format` a GGUF block format; see blocks.h.
    """
    panels = -(-n // PANEL)
    if op == "quantized_matmul":
        return (panels, k // BLOCK_ELEMENTS, PANEL * BLOCK_FORMATS[format].block_bytes)
    return (panels, k, PANEL) if format == "f32" else (panels, -(-k // 2), PANEL, 2)
