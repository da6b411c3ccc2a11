"""What someone may have meant by a word that is not known.

A suggestion that is not near misleads more than none, so beyond a distance the
choices themselves are told.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection

CUTOFF = 0.6
"""difflib's own: `prot` is near `port` (0.75), `nothing` near no verb."""


def hint(word: str, choices: Collection[str]) -> str:
    """`the nearest is 'x'` when one is near, else all choices; for an error's remedy."""
    if near := difflib.get_close_matches(word, choices, n=1, cutoff=CUTOFF):
        return f"the nearest is {near[0]!r}"
    return f"known are {', '.join(sorted(choices))}" if choices else "none is known"
