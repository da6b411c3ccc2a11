"""Reproducible randomness: one u64 seed, sub-streams in a fixed order.

Whatever is random takes `--seed`; without it `choose` draws one, and the
command prints and stores it. Token sampling alone uses another generator
(Philox keyed by request seed and token index) and lives with the sampler.
"""

from __future__ import annotations

import secrets

import numpy as np

from bedplate.core.errors import UsageError

SEED_LIMIT = 1 << 64


def choose(flag: int | str | None = None) -> int:
    """The seed given by a flag, else a random u64.

    Raises `UsageError` for text that is not an integer in [0, 2**64).
    """
    if flag is None:
        return secrets.randbits(64)
    try:
        seed = int(str(flag), 0)
    except ValueError:
        seed = -1
    if not 0 <= seed < SEED_LIMIT:
        raise UsageError(
            f"{flag!r} is not a seed",
            code="core.seed",
            remedy="give an integer from 0 to 18446744073709551615",
        )
    return seed


def streams(seed: int, count: int) -> list[np.random.Generator]:
    """`count` independent generators, always the same for the same seed.

    The position in the list is part of the contract of whoever calls it: a
    new consumer takes the next position and never moves the others.
    """
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(count)]
