"""Banks: how many wavefronts one request to shared memory takes.

Shared memory has 32 banks of 4 bytes; in one wavefront each bank gives one word, to all
lanes that ask for that word. So a request takes as many wavefronts as the busiest bank has
distinct words, and accesses of 8 and 16 bytes take at least 2 and 4, because a wavefront
moves 128 bytes. What is above that minimum are conflicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

BANKS = 32
BANK_BYTES = 4


def least(bytes: int) -> int:
    """Wavefronts of a request without conflicts, `bytes` a lane."""
    return max(bytes // BANK_BYTES, 1)


def wavefronts(addresses: Iterable[int], bytes: int) -> int:
    """The wavefronts of one request, given the address of each active lane."""
    words: dict[int, set[int]] = {}
    for address in addresses:
        for word in range(address // BANK_BYTES, (address + bytes - 1) // BANK_BYTES + 1):
            words.setdefault(word % BANKS, set()).add(word)
    return max(least(bytes), *map(len, words.values())) if words else 0


def by_alignment(values: Sequence[int], bytes: int) -> tuple[int, ...]:
    """The wavefronts of `base + values[lane]` for all lanes, for each `base % 4`.

    A base moved by a whole word only turns the banks.
    """
    return tuple(
        wavefronts([base + value for value in values], bytes) for base in range(BANK_BYTES)
    )
