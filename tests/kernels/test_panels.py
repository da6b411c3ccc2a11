"""The layouts of the oracle itself, spelled out."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.panels import block_panels, float_panels

from bedplate.kernels.api import BLOCK_FORMATS, encode_blocks


def test_float_panels_hold_sixteen_columns_side_by_side() -> None:
    """[panel, k, column] for f32, zero past N."""
    weight = np.arange(18 * 3, dtype=np.float32).reshape(18, 3)
    panels = float_panels(weight)
    assert panels.shape == (2, 3, 16)
    assert panels[1, 2, 1] == weight[17, 2]
    assert not panels[1, :, 2:].any()


def test_bf16_panels_hold_pairs_along_k() -> None:
    """[panel, pair, column, 2], zero past an odd K."""
    weight = np.arange(1, 16 * 3 + 1, dtype=np.uint16).reshape(16, 3)
    panels = float_panels(weight)
    assert panels.shape == (1, 2, 16, 2)
    assert panels[0, 1, 5].tolist() == [weight[5, 2], 0]
    assert panels[0, 0, 5].tolist() == weight[5, :2].tolist()


@pytest.mark.parametrize(("kind", "size"), [("q8_0", 544), ("q4_0", 288), ("q4_1", 320)])
def test_block_panels_hold_four_codes_of_each_row_in_turn(kind: str, size: int) -> None:
    """Codes of 16 rows, then their scales, then Q4_1's minima; rows past N have scale zero."""
    rng = np.random.default_rng(1)
    w = encode_blocks(rng.standard_normal((17, 64)).astype(np.float32), BLOCK_FORMATS[kind])
    panels = block_panels(w)
    assert panels.shape == (2, 2, size)
    raw = w.data.reshape(17, 2, -1)
    head = 4 if kind == "q4_1" else 2
    flip = 0x80 if kind == "q8_0" else 0
    codes = raw[3, 1, head:] ^ flip
    for j in range(len(codes) // 4):
        at = 64 * j + 4 * 3
        assert panels[0, 1, at : at + 4].tolist() == codes[4 * j : 4 * j + 4].tolist()
    scales = panels[0, 1, 16 * (32 if kind == "q8_0" else 16) :][:32].view(np.float16)
    assert scales[3] == raw[3, 1, :2].view(np.float16)[0]
    if kind == "q4_1":
        assert panels[0, 1, 288:].view(np.float16)[3] == raw[3, 1, 2:4].view(np.float16)[0]
    assert not panels[1, :, size - 32 :].view(np.float16)[:, 1:].any()
