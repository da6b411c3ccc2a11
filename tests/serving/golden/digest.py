"""Digests of logits rows: a few numbers that a wrong row cannot match.

A row of V logits becomes eight projections on fixed random signs, divided by
sqrt(V). If every logit is off by at most e, a projection is off by at most
sqrt(V) e in the worst case and by about e when the errors are independent; a
shifted, swapped or half-written row is off by far more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SCHEMA = "bedplate.serving-golden/1"
PROJECTIONS = 8
ROWS_KEPT = 16  # of a prompt
_SEED = 20260101


def signs(vocabulary: int) -> NDArray[np.float32]:
    """Random signs, float32 [PROJECTIONS, vocabulary]; the same on every machine."""
    bits = np.random.Generator(np.random.PCG64(_SEED)).integers(0, 2, (PROJECTIONS, vocabulary))
    return (2 * bits - 1).astype(np.float32)


def digest_rows(rows: NDArray[np.float32], signs: NDArray[np.float32]) -> NDArray[np.float64]:
    """Digests [n, PROJECTIONS] of logits [n, vocabulary]."""
    return rows.astype(np.float64) @ signs.T.astype(np.float64) / np.sqrt(rows.shape[1])


def rows_kept(length: int) -> list[int]:
    """Positions whose digest is stored: `ROWS_KEPT` spread evenly, the first and the last among
    them; all of a shorter prompt."""
    return sorted({round(i * (length - 1) / (ROWS_KEPT - 1)) for i in range(ROWS_KEPT)})
