"""The packed layouts in numpy: the oracle of the native packing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bedplate.kernels.formats import BLOCK_ELEMENTS, Array, BlockArray
from bedplate.kernels.pack import PANEL


def float_panels(weight: Array) -> Array:
    """[N,K] float32 -> [panels,K,16]; [N,K] uint16 (bf16) -> [panels,ceil(K/2),16,2]."""
    n, k = weight.shape
    pairs = weight.dtype == np.uint16
    padded = np.zeros((-(-n // PANEL) * PANEL, k + (k % 2 if pairs else 0)), weight.dtype)
    padded[:n, :k] = weight
    panels = padded.reshape(len(padded) // PANEL, PANEL, padded.shape[1])
    if not pairs:
        return np.ascontiguousarray(panels.transpose(0, 2, 1))
    grouped = panels.reshape(len(panels), PANEL, panels.shape[2] // 2, 2)
    return np.ascontiguousarray(grouped.transpose(0, 2, 1, 3))


def block_panels(weight: BlockArray) -> npt.NDArray[np.uint8]:
    """GGUF rows -> uint8 [panels, K/32, bytes]: codes of 16 rows, scales, Q4_1's minima.

    Codes lie in vectors of 64 bytes, four codes along K for each row. Q8_0
    codes are stored plus 128; the halves of 4-bit bytes are codes 4j.. and
    16 + 4j.. of the block, which GGUF's own bytes already pair.
    """
    n, k = weight.shape
    blocks = k // BLOCK_ELEMENTS
    size = weight.format.block_bytes
    raw = np.zeros((-(-n // PANEL) * PANEL, blocks, size), np.uint8)
    raw[:n] = weight.data.reshape(n, blocks, size)
    panels = raw.reshape(-1, PANEL, blocks, size).transpose(0, 2, 1, 3)
    head = 4 if weight.format.has_minimum else 2
    codes = panels[..., head:]
    if weight.format.bits == 8:
        codes = codes ^ np.uint8(0x80)
    groups = codes.reshape(*codes.shape[:3], -1, 4).transpose(0, 1, 3, 2, 4)
    parts = [groups.reshape(*codes.shape[:2], -1)]
    parts += [panels[..., at : at + 2].reshape(*codes.shape[:2], -1) for at in range(0, head, 2)]
    return np.ascontiguousarray(np.concatenate(parts, axis=-1))
