"""Philox4x32-10, the counter-based generator behind `sample`.

Random access by (key, counter) is the point: a request's n-th token draws the
same number alone, in a batch, after preemption or on another device.
Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
1, 2, 3", SC 2011, section 3.3; vectors from its Random123 distribution.
"""

from __future__ import annotations

MULTIPLIER_0 = 0xD2511F53
MULTIPLIER_1 = 0xCD9E8D57
WEYL_0 = 0x9E3779B9
WEYL_1 = 0xBB67AE85
ROUNDS = 10
_MASK = 0xFFFFFFFF


def philox4x32(
    counter: tuple[int, int, int, int], key: tuple[int, int]
) -> tuple[int, int, int, int]:
    """Ten rounds over four 32-bit counter words with two 32-bit key words."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        product_0, product_1 = MULTIPLIER_0 * c0, MULTIPLIER_1 * c2
        c0, c1, c2, c3 = (
            (product_1 >> 32) ^ c1 ^ k0,
            product_1 & _MASK,
            (product_0 >> 32) ^ c3 ^ k1,
            product_0 & _MASK,
        )
        k0, k1 = (k0 + WEYL_0) & _MASK, (k1 + WEYL_1) & _MASK
    return c0, c1, c2, c3


def uniform(seed: int, token_index: int) -> float:
    """The draw for one generated token: a multiple of 2^-53 in [0, 1).

    `seed` and `token_index` are u64, low word first; words 0 and 1 of the
    output give the upper and lower bits (26 and 27 of them).
    """
    word_0, word_1, _, _ = philox4x32(
        (token_index & _MASK, token_index >> 32 & _MASK, 0, 0), (seed & _MASK, seed >> 32 & _MASK)
    )
    return float((word_0 >> 6) * 2**27 + (word_1 >> 5)) / 2**53
