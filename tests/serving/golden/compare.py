"""Holding our logits against the golden file, with the bound that its sigma gives.

The change that rounding makes in a logit is a sum of very many small independent
terms, so it is taken as normal with the derived standard deviation sigma of its
position. `KAPPA` standard deviations are the bound: the two-sided tail beyond 7.3
is 2.9e-13, so among 60,000 compared values one is expected in 60 million runs.

A projection adds the errors of a row, and these are not independent: in the worst
case the row errs in one direction only. Then its projection is that error, normal
with sigma, times the direction's projection on random signs, normal too. The tail
of a product of two standard normals falls as exp(-t) (density K0(t)/pi), and beyond
`KAPPA_OF_DIGESTS` it is again below 3e-13.

Such bounds let errors pass that are too large everywhere and nowhere huge. So the root
mean square of the errors, in standard deviations, must also lie in `RMS`, near what is
measured: over each prompt of `ENOUGH` positions here, and over all prompts in the tests.
Below is as wrong as above: then sigma says nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.serving.golden.digest import SCHEMA, digest_rows, rows_kept, signs
from tests.serving.golden.prompts import prompts

KAPPA = 7.3
KAPPA_OF_DIGESTS = 27.0
# (least, most) of the rms error in sigmas, over a prompt. Measured over prompts of 40 to 170
# tokens: 0.11 to 0.15, 0.68 to 0.98, 0.75 to 1.17; float32's sigma counts every rounding of
# the reference and of ours, and ours rounds less often than once an operation.
RMS = {"float32": (0.05, 0.4), "bfloat16": (0.5, 1.2), "quantized": (0.55, 1.35)}
ENOUGH = 40
STORED_ROUNDING = 1e-4  # the file's logits and digests have four to five decimals
_FILE = Path(__file__).with_name("expected.json")


@dataclass(frozen=True)
class Expected:
    """What transformers gave for one prompt; see make.py."""

    ids: list[int]
    best: NDArray[np.int64]
    logit: NDArray[np.float64]
    margin: NDArray[np.float64]
    digests: NDArray[np.float64]
    sigma: dict[str, NDArray[np.float64]]
    greedy: list[int]


def load(encode: Callable[[str], list[int]]) -> list[Expected]:
    """The golden file with its prompts. The ids that it stores must be those of `encode`."""
    document = json.loads(_FILE.read_text())
    assert document["schema"] == SCHEMA
    found = []
    for ids, entry in zip(prompts(encode), document["prompts"], strict=True):
        assert entry["length"] == len(ids)
        assert entry["ids"] is None or entry["ids"] == ids, "the tokenizer gives other ids"
        found.append(
            Expected(
                ids,
                np.array(entry["best"]),
                np.array(entry["logit"]),
                np.array(entry["margin"]),
                np.array(entry["digests"]),
                {form: np.array(values) for form, values in entry["sigma"].items()},
                entry["greedy"],
            )
        )
    return found


@dataclass
class Tally:
    """What a comparison found, over all prompts."""

    positions: int = 0
    decided: int = 0  # positions where the margin exceeds twice the bound
    agreed: int = 0  # positions with the same best token, decided or not
    squares: float = 0.0  # of the errors in standard deviations
    values: int = 0

    @property
    def rms_sigmas(self) -> float:
        """Root mean square error in derived standard deviations; near or below 1 when they hold."""
        return (self.squares / self.values) ** 0.5

    def as_quality(self) -> dict[str, Any]:
        """For a measurement's `quality`."""
        return {
            "positions": self.positions,
            "argmax_agreement": round(self.agreed / self.positions, 4),
            "argmax_decided": self.decided,
            "logit_error_rms_sigmas": round(self.rms_sigmas, 3),
        }


def check(expected: Expected, logits: NDArray[np.float32], form: str, tally: Tally) -> list[str]:
    """How `logits` [tokens, vocabulary] break the bounds of a format; empty when they hold."""
    sigma = expected.sigma[form]
    bound = KAPPA * sigma + STORED_ROUNDING
    problems = []
    if logits.shape[0] != len(expected.ids):
        return [f"{logits.shape[0]} rows for {len(expected.ids)} tokens"]
    error = logits[np.arange(len(sigma)), expected.best] - expected.logit
    problems += _beyond("logit", error, bound)
    kept = rows_kept(len(expected.ids))
    digests = digest_rows(logits[kept], signs(logits.shape[1]))
    digest_error = digests - expected.digests
    digest_bound = KAPPA_OF_DIGESTS * sigma[kept][:, None] + STORED_ROUNDING
    problems += _beyond("digest", digest_error, digest_bound)
    best = logits.argmax(1)
    decided = expected.margin > 2 * bound
    wrong = np.flatnonzero(decided & (best != expected.best))
    problems += [
        f"position {i}: best token {best[i]}, expected {expected.best[i]} by a margin of "
        f"{expected.margin[i]:.3g}"
        for i in wrong
    ]
    tally.positions += len(sigma)
    tally.decided += int(decided.sum())
    tally.agreed += int((best == expected.best).sum())
    mine = Tally(
        squares=float(((error / sigma) ** 2).sum())
        + float(((digest_error / sigma[kept][:, None]) ** 2).sum()),
        values=error.size + digest_error.size,
    )
    least, most = RMS[form]
    if len(sigma) >= ENOUGH and not least <= mine.rms_sigmas <= most:  # NaN is neither
        problems.append(f"the errors' rms is {mine.rms_sigmas:.3g} sigmas, not {least} to {most}")
    tally.squares += mine.squares
    tally.values += mine.values
    return problems


def _beyond(what: str, error: NDArray[Any], bound: NDArray[Any]) -> Sequence[str]:
    over = np.argwhere(~(np.abs(error) <= bound))  # NaN is over
    return [f"{what} at {at.tolist()} is off by {error[tuple(at)]:.3g}" for at in over[:3]]
